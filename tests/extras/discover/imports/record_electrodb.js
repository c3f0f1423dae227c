// Records what ElectroDB itself writes, for test_formats.py.
// npm install electrodb@3; node record.js > fixtures/electrodb-items.json
const {Entity} = require("electrodb");
const {version} = require("electrodb/package.json");
const text = (more) => ({type: "string", required: true, ...more});
const number = (more) => ({type: "number", required: true, ...more});
const model = (entity, attributes, indexes, version = "1") => ({model: {entity, version, service: "Shop"}, attributes, indexes});
const pk = (composite, more) => ({field: "pk", composite, ...more});
const sk = (composite, more) => ({field: "sk", composite, ...more});
const models = {
  user: model("User", {userId: text(), name: text(), email: text()},
    {primary: {pk: pk(["userId"]), sk: sk([])},
     emails: {index: "gsi1", collection: "people", pk: {field: "gsi1pk", composite: ["email"]}, sk: {field: "gsi1sk", composite: ["userId"]}}}),
  invoice: model("invoice", {userId: text(), number: number({padding: {length: 8, char: "0"}})},
    {primary: {pk: pk(["userId"]), sk: sk(["number"])}}, "2"),
  userByEmail: model("userByEmail", {email: text(), userId: text(), name: text()},
    {primary: {pk: pk(["email"]), sk: sk([])}}),
  invoiceByNumber: model("invoiceByNumber", {number: number({padding: {length: 8, char: "0"}}), userId: text()},
    {primary: {pk: pk(["number"]), sk: sk(["userId"])}}),
  flag: model("flag", {userId: text(), open: {type: "boolean", required: true}}, {primary: {pk: pk(["userId"]), sk: sk(["open"])}}),
  upper: model("upper", {code: text({label: "c"}), part: text()}, {primary: {pk: pk(["code"], {casing: "upper"}), sk: sk(["part"], {casing: "none"})}}),
  bare: model("bare", {pk: text(), sk: text()}, {primary: {pk: pk(["pk"]), sk: sk(["sk"])}}),
  templated: model("templated", {kind: text(), at: text({field: "t"})}, {primary: {pk: pk(undefined, {composite: ["kind"], template: "KIND#${kind}"}), sk: sk(["at"], {template: "AT#${at}", casing: "none"})}}),
};
const items = {
  user: [{userId: "A7x", name: "Ada", email: "Ada@Example.org"}, {userId: "b8", name: "Bob", email: "bob@example.org"}],
  invoice: [{userId: "A7x", number: 7}, {userId: "b8", number: 1234567}],
  flag: [{userId: "A7x", open: true}],
  userByEmail: [{email: "Ada@Example.org", userId: "A7x", name: "Ada"}],
  invoiceByNumber: [{number: 7, userId: "A7x"}],
  upper: [{code: "aB", part: "pQ"}],
  bare: [{pk: "Xy", sk: "Zw"}],
  templated: [{kind: "Big", at: "2026-T"}],
};
const recorded = Object.entries(models).map(([name, one]) => {
  const entity = new Entity(one, {table: "shop"});
  return [name, items[name].map((item) => entity.put(item).params().Item)];
});
const rows = (all) => all.map((one) => `\n  ${JSON.stringify(one)}`).join(",");
const held = recorded.map(([name, ones]) => `\n  "${name}": ${JSON.stringify(ones)}`).join(",");
console.log(`{"source": "electrodb ${version}: entity.put(item).params().Item", "table": "shop",
 "entities": [${rows(Object.values(models))}],
 "items": {${held}}}`);
