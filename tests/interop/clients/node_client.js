// memjs (binary) and memcached (text) for Node; see run_client in larder_test.py for the lines this speaks.
"use strict";
const { createRequire } = require("module");
const path = require("path");
const readline = require("readline");
const util = require("util");

const [kind, packages, host, port] = process.argv.slice(2);
const load = createRequire(path.join(packages, "package.json"));
// memcached makes a text of a buffer, which takes up to twice the bytes.
const SIZES = [0, 1, 100, 3 * 1024, 20 * 1024, 100 * 1024, ...(kind === "memjs" ? [700 * 1024] : [])];
const TAIL = Buffer.from("\r\n<tail>");
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function valueOf(size) {
  return Buffer.from(Uint8Array.from({ length: size }, (_, i) => (i % 256) * 31 + size));
}

function plain(value) {
  return Buffer.isBuffer(value) ? value.toString("latin1") : value;
}

function check(name, got, want) {
  const [a, b] = [got, want].map((value) => JSON.stringify(Array.isArray(value) ? value.map(plain) : plain(value)));
  console.log(a === b ? `ok ${name}` : `not ok ${name}: got ${String(a).slice(0, 100)}, want ${String(b).slice(0, 100)}`);
}

async function ask(line) {
  console.log(line);
  return (await lines.next()).value.trim();
}

// memjs, with the names that both have. Its prepend sends the opcode of append, so it is left out.
class Memjs {
  constructor() {
    this.client = load("memjs").Client.create(`${host}:${port}`, { timeout: 60, conntimeout: 60, retries: 1 });
  }
  set(key, value, expires = 3600) { return this.client.set(key, value, { expires }); }
  async get(key) { return (await this.client.get(key)).value; }
  add(key, value) { return this.client.add(key, value, { expires: 3600 }); }
  replace(key, value) { return this.client.replace(key, value, { expires: 3600 }); }
  append(key, value) { return this.client.append(key, value); }
  touch(key, expires) { return this.client.touch(key, expires); }
  delete(key) { return this.client.delete(key); }
  async incr(key, amount) { return (await this.client.increment(key, amount, { initial: 7, expires: 3600 })).value; }
  async decr(key, amount) { return (await this.client.decrement(key, amount, { initial: 7, expires: 3600 })).value; }
  flush() { return util.promisify(this.client.flush.bind(this.client))(); }
  async more() {
    check("a missing number begins with its initial value", await this.incr("no number", 5), 7);
    const stats = await new Promise((done) => this.client.stats((error, server, found) => done(found)));
    check("stats", stats.version, "1.6.45");
  }
  close() { this.client.close(); }
}

// memcached, by 3rd-Eden.
class Memcached {
  constructor() {
    const Client = load("memcached");
    this.client = new Client(`${host}:${port}`, { timeout: 60000, idle: 60000, maxValue: 1 << 20 });
  }
  call(name, ...words) { return util.promisify(this.client[name].bind(this.client))(...words); }
  // It reports what is not stored as an error.
  async stored(name, ...words) {
    try {
      return await this.call(name, ...words);
    } catch (error) {
      if (/not stored|notFound/i.test(error.message)) return false;
      throw error;
    }
  }
  set(key, value, lifetime = 3600) { return this.call("set", key, value, lifetime); }
  async get(key) { return (await this.call("get", key)) ?? null; }
  add(key, value) { return this.stored("add", key, value, 3600); }
  replace(key, value) { return this.stored("replace", key, value, 3600); }
  append(key, value) { return this.stored("append", key, value); }
  prepend(key, value) { return this.stored("prepend", key, value); }
  touch(key, lifetime) { return this.call("touch", key, lifetime); }
  delete(key) { return this.call("del", key); }
  incr(key, amount) { return this.call("incr", key, amount); }
  decr(key, amount) { return this.call("decr", key, amount); }
  flush() { return this.call("flush"); }
  async more() {
    for (const size of [100, 100 * 1024]) {
      const { cas, ...found } = await this.call("gets", `cas:${size}`);
      check(`gets ${size}`, [found[`cas:${size}`], cas !== "0"], [valueOf(size), true]);
      check(`cas ${size}`, await this.call("cas", `cas:${size}`, "new", cas, 3600), true);
      check(`cas ${size}, out of date`, await this.call("cas", `cas:${size}`, "newer", cas, 3600), false);
      check(`cas ${size}, value`, await this.get(`cas:${size}`), "new");
    }
    for (const batch of [1, 2, 50, 500]) {
      const keys = Array.from({ length: batch }, (_, i) => `batch:${i}`);
      const found = await this.call("getMulti", [...keys, "no:1"]);
      check(`getMulti of ${batch}`, keys.every((key, i) => valueOf(i).equals(found[key])) && Object.keys(found).length, batch);
    }
    const [version] = await this.call("version");
    check("version", version.version, "1.6.45");
    const [stats] = await this.call("stats");
    check("stats", stats.version, "1.6.45");
    const [settings] = await this.call("settings");
    check("settings", settings.evictions, "on");
    check("items", Array.isArray(await this.call("items")), true);
    check("slabs", Array.isArray(await this.call("slabs")), true);
  }
  close() { this.client.end(); }
}

async function bySize(c, size) {
  const value = valueOf(size);
  // Of an empty buffer this client makes an empty text.
  const empty = (got) => (got === "" || got === null ? Buffer.alloc(0) : got);
  check(`get ${size}`, empty(await c.get(`get:${size}`)), value);
  check(`add ${size}, there`, await c.add(`add:${size}`, "new"), false);
  check(`add ${size}, value`, empty(await c.get(`add:${size}`)), value);
  check(`replace ${size}`, [await c.replace(`replace:${size}`, "new"), plain(await c.get(`replace:${size}`))], [true, "new"]);
  const joined = async (use) => [await c[use](`${use}:${size}`, TAIL), await c.get(`${use}:${size}`)];
  check(`append ${size}`, await joined("append"), [true, Buffer.concat([value, TAIL])]);
  if (c.prepend) check(`prepend ${size}`, await joined("prepend"), [true, Buffer.concat([TAIL, value])]);
  check(`touch ${size}`, await c.touch(`touch:${size}`, 7200), true);
  const left = Number(await ask(`ttl touch:${size}`));
  check(`touch ${size}: ttl of ${left}`, left > 7100 && left <= 7200, true);
  check(`delete ${size}`, await c.delete(`delete:${size}`), true);
  check(`delete ${size}, value`, await c.get(`delete:${size}`), null);
}

async function main() {
  const c = kind === "memjs" ? new Memjs() : new Memcached();
  for (const size of SIZES) {
    for (const use of ["get", "add", "replace", "append", "prepend", "cas", "touch", "delete"]) {
      check(`set ${use} ${size}`, await c.set(`${use}:${size}`, valueOf(size)), true);
    }
  }
  for (let i = 0; i < 500; i++) await c.set(`batch:${i}`, valueOf(i));
  for (const use of ["incr", "decr"]) await c.set(`number:${use}`, "1234567890");
  await c.set("flushed", "x");
  await ask("settle");
  for (const size of SIZES) await bySize(c, size);
  check("incr", [await c.incr("number:incr", 10), await c.incr("number:incr", 1)], [1234567900, 1234567901]);
  check("decr", await c.decr("number:decr", 90), 1234567800);
  check("missing", [await c.get("no"), await c.replace("no", "x"), await c.add("no:add", "x")], [null, false, true]);
  await c.more();
  await c.flush();
  check("flush", await c.get("flushed"), null);
  c.close();
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
