/**
 * sync-rules in an app of the AWS CDK: a nested stack of the template that `sync-rules infra` writes. Synthesis compiles
 * the rules, fills the bundle of the functions, and checks the given tables. A Python with sync-rules does all three.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CfnOutput, CfnStack, NestedStack, Stack, Token } from "aws-cdk-lib";
import { CfnTable, ITable } from "aws-cdk-lib/aws-dynamodb";
import { Asset } from "aws-cdk-lib/aws-s3-assets";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";
import { Construct } from "constructs";

const MACHINE = "AWS::Serverless::StateMachine";
const DROPPED = ["Condition", "DependsOn"]; // by CfnInclude, of resources that it does not parse

export interface SyncRulesProps {
  /** The rules file. In a project of `sync-rules init`, the template and requirements beside it are used. */
  readonly rules: string;
  /** Tables of the app, by their names in the rules file. The stack creates the other tables. */
  readonly tables?: Record<string, ITable>;
  /** Parameters of the template, such as `StageVariable` or `WriteUnitsPerSecond`. */
  readonly parameters?: Record<string, string>;
  /** A Python with sync-rules. Default: `.venv/bin/python` if it is there, else `python3`. */
  readonly python?: string;
}

export class SyncRules extends NestedStack {
  /** The template; its resources, such as `getResource("StreamFunction")`, take overrides. */
  readonly template: CfnInclude;

  constructor(scope: Construct, id: string, props: SyncRulesProps) {
    const folder = mkdtempSync(join(tmpdir(), "sync-rules-"));
    try {
      const inputs = makeInputs(folder, props);
      const parameters = { ...props.parameters };
      for (const [name, table] of Object.entries(props.tables ?? {})) {
        parameters[inputs.streams[name]!] = table.tableStreamArn!;
        if (inputs.names[name]) parameters[inputs.names[name]] = table.tableName;
      }
      super(scope, id, { parameters });
      // CloudFormation puts this id into the name of the nested stack, and that name is limited.
      (this.nestedStackResource as CfnStack).overrideLogicalId(id.replace(/[^A-Za-z0-9]/g, ""));
      this.template = this.include(inputs);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  private include(inputs: Inputs): CfnInclude {
    const template = JSON.parse(readFileSync(inputs.template, "utf8"));
    template.Globals.Function.CodeUri = this.locate("Code", inputs.code);
    const definition = this.locate("Machine", inputs.machine);
    for (const resource of Object.values<any>(template.Resources)) {
      if (resource.Type === MACHINE) resource.Properties.DefinitionUri = definition;
    }
    const { WriteUrl: url, ...outputs } = template.Outputs; // it names a resource that SAM adds, unknown to CfnInclude
    if (url) new CfnOutput(this, "WriteUrl", { description: url.Description, value: Token.asString(url.Value) });
    writeFileSync(inputs.template, JSON.stringify({ ...template, Outputs: outputs }));
    // Not parsed: the classes of SAM's resources know only some of their properties.
    const dehydratedResources = Object.keys(template.Resources);
    const included = new CfnInclude(this, "Template", { templateFile: inputs.template, dehydratedResources });
    for (const [name, resource] of Object.entries<any>(template.Resources)) {
      const element = included.getResource(name);
      element.overrideLogicalId(name);
      for (const key of DROPPED) if (key in resource) element.addOverride(key, resource[key]);
    }
    return included;
  }

  private locate(id: string, path: string): unknown {
    const asset = new Asset(this, id, { path });
    return this.resolve({ Bucket: asset.s3BucketName, Key: asset.s3ObjectKey });
  }
}

interface Inputs {
  readonly template: string;
  readonly code: string;
  readonly machine: string;
  readonly streams: Record<string, string>;
  readonly names: Record<string, string>;
}

function makeInputs(folder: string, props: SyncRulesProps): Inputs {
  const python = props.python ?? (existsSync(".venv/bin/python") ? ".venv/bin/python" : "python3");
  const tables = Object.fromEntries(Object.entries(props.tables ?? {}).map(([name, one]) => [name, describe(one)]));
  const given = { tables, parameters: props.parameters ?? {} };
  const command = ["-P", "-m", "sync_rules.extras.cdk.inputs", folder, "--rules", props.rules];
  const env = { ...process.env, PYTHONHASHSEED: "0" }; // the same bundle each time
  const done = spawnSync(python, command, { input: JSON.stringify(given), encoding: "utf8", env });
  if (done.status !== 0) throw new Error(done.stderr || `${python} does not run: ${done.error?.message}`);
  process.stderr.write(done.stderr);
  return JSON.parse(done.stdout);
}

/** What is known of a table; null for what is not. */
function describe(table: ITable): { view: string | null; name: string | null } {
  const own = table.node.defaultChild as CfnTable | undefined;
  if (own === undefined) {
    const name = Token.isUnresolved(table.tableName) ? null : table.tableName;
    return { view: table.tableStreamArn ? null : "", name };
  }
  const stack = Stack.of(table);
  const name = stack.resolve(own.tableName) ?? "";
  return {
    view: stack.resolve(own.streamSpecification)?.streamViewType ?? "",
    name: typeof name === "string" ? name : null,
  };
}
