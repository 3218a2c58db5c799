// What Node reads: for each line with two bodies in hexadecimal, the arguments of the call in each.
const lines = require("node:fs").readFileSync(0, "latin1").split("\n").filter(Boolean);

function written(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return "n" + bytes.toString("hex");
  }
  if (typeof value === "string") return "s" + Buffer.from(value, "utf16le").swap16().toString("hex");
  if (Array.isArray(value)) return "[" + value.map(written).join(",") + "]";
  const members = Object.entries(value).map(([key, member]) => written(key) + ":" + written(member));
  return "{" + members.sort().join(",") + "}";
}

function read(body, path) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    return written(path.reduce((value, key) => value[key], JSON.parse(text)));
  } catch (error) {
    return "unread:" + error.name;
  }
}

for (const line of lines) {
  const [sent, forwarded] = line.split(" ").map((hex) => Buffer.from(hex, "hex"));
  console.log(read(sent, ["params", "arguments", "arguments"]), read(forwarded, ["params", "arguments"]));
}
