// An app of the CDK: tables and the construct in TypeScript, as its first argument says. The twin of app.py.
const fromPackage = require("node:module").createRequire(require.resolve("../../../packages/cdk/package.json"));
const { App, CfnOutput, Stack } = fromPackage("aws-cdk-lib");
const { AttributeType, Table, TableV2 } = fromPackage("aws-cdk-lib/aws-dynamodb");
const { SyncRules } = require("../../../packages/cdk");

const { folder, rules, tables, parameters, python } = JSON.parse(process.argv[2]);
const stack = new Stack(new App({ outdir: folder }), "Shop");
const made = Object.entries(tables).map(([id, { v2, stream, tableName }]) => {
  const key = (name) => ({ name, type: AttributeType.STRING });
  const common = { partitionKey: key("PK"), sortKey: key("SK"), tableName };
  const table = v2
    ? new TableV2(stack, id, { ...common, dynamoStream: stream })
    : new Table(stack, id, { ...common, stream });
  return [id, table];
});
const keeper = new SyncRules(stack, "sync-rules", { rules, tables: Object.fromEntries(made), parameters, python });
new CfnOutput(stack, "SyncRulesStack", { value: keeper.stackName });
stack.node.root.synth();
