import type { Millis } from '../../domain/entry.ts'
import type { Scope } from '../../domain/key.ts'
import type { RowRange, StoreTable, TableKey, TableRow, TableWrite } from '../../domain/ports.ts'
import {
  checkExpectedRevision,
  checkRowRange,
  checkTableKey,
  checkTableWrites,
  formatNamespace,
  formatTableKey,
  packValue,
  parseTableKey,
  unpackValue,
} from '../../domain/tableRows.ts'
import type { RedisConnection } from './connection.ts'
import type { RedisKeys } from './keys.ts'
import type { ScopeRegistry } from './scopeRegistry.ts'
import type { Script } from './scripts/shared.ts'
import type { Reply } from './transport.ts'

/**
 * Writes rows, given as name, expected revision, time of creation and value; an empty value deletes. Replies with the
 * position and revision of the first row that has another revision than expected, and writes nothing then. A row is
 * stored as REVISION:CREATED:UPDATED:VALUE.
 */
const writeScript: Script = {
  name: 'write-rows',
  source: `
local rowsKey, namesKey = KEYS[1], KEYS[2]
local at = ARGV[1]
local function revisionOf(row) return row and string.match(row, '^(%d+):') or '0' end
for n = 2, #ARGV, 4 do
  local revision = revisionOf(redis.call('HGET', rowsKey, ARGV[n]))
  if ARGV[n + 1] ~= '' and ARGV[n + 1] ~= revision then return { (n - 2) / 4, revision } end
end
for n = 2, #ARGV, 4 do
  local name, created, value = ARGV[n], ARGV[n + 2], ARGV[n + 3]
  local row = redis.call('HGET', rowsKey, name)
  if value == '' then
    redis.call('HDEL', rowsKey, name)
    redis.call('ZREM', namesKey, name)
  else
    if created == '' then created = row and string.match(row, '^%d+:([^:]*):') or at end
    local revision = string.format('%d', tonumber(revisionOf(row)) + 1)
    redis.call('HSET', rowsKey, name, table.concat({ revision, created, at, value }, ':'))
    redis.call('ZADD', namesKey, 0, name)
  end
end
return {}
`,
}

/** Lists names and rows of a range of names. */
const listScript: Script = {
  name: 'list-rows',
  source: `
local names = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local found = {}
for _, name in ipairs(names) do
  found[#found + 1] = name
  found[#found + 1] = redis.call('HGET', KEYS[1], name)
end
return found
`,
}

const eraseScript: Script = {
  name: 'erase-rows',
  source: `
local count = redis.call('HLEN', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2])
return count
`,
}

/** Rows in Redis. They do not expire. */
export class RedisTable implements StoreTable {
  readonly #connection: RedisConnection
  readonly #keys: RedisKeys
  readonly #registry: ScopeRegistry

  constructor(connection: RedisConnection, keys: RedisKeys, registry: ScopeRegistry) {
    this.#connection = connection
    this.#keys = keys
    this.#registry = registry
  }

  async readRows(scope: Scope, keys: readonly TableKey[]): Promise<readonly (TableRow | undefined)[]> {
    keys.forEach(checkTableKey)
    if (keys.length === 0) return []
    const [rows] = this.#keys.table(scope)
    const found = await this.#connection.run(rows, ['HMGET', rows, ...keys.map(formatRowName)], true)
    return (found as readonly (string | null)[]).map((row, index) =>
      row === null ? undefined : parseStoredRow(keys[index] as TableKey, row),
    )
  }

  async writeRows(scope: Scope, at: Millis, writes: readonly TableWrite[]): Promise<void> {
    checkTableWrites(writes)
    if (writes.length === 0) return
    await this.#registry.register(scope)
    const args = writes.flatMap((write) => [
      formatRowName(write),
      String(write.expected ?? ''),
      String(write.createdAt ?? ''),
      write.value === undefined ? '' : formatValue(write.value),
    ])
    const [index, revision] = (await this.#connection.runScript(writeScript, this.#keys.table(scope), [
      String(at),
      ...args,
    ])) as readonly Reply[]
    if (index !== undefined) checkExpectedRevision(writes[Number(index)] as TableWrite, Number(revision))
  }

  async listRows(scope: Scope, range: RowRange): Promise<readonly TableRow[]> {
    checkRowRange(range)
    const start = formatPrefix(range.prefix)
    const after = range.after === undefined ? '' : formatRowName(range.after)
    const from = after >= start && after !== '' ? `(${after}` : `[${start}`
    const to = start === '' ? '+' : `(${start.slice(0, -1)}\u0001`
    const limit = String(Math.min(range.limit, 2 ** 31 - 1))
    const args = [start === '' && after === '' ? '-' : from, to, limit]
    const found = await this.#connection.runScript(listScript, this.#keys.table(scope), args, true)
    const rows = found as readonly string[]
    return rows.flatMap((name, index) =>
      index % 2 === 0 ? [parseStoredRow(parseRowName(name), rows[index + 1] as string)] : [],
    )
  }

  async listScopes(after: Scope, limit: number): Promise<readonly Scope[]> {
    const scopes = (await this.#registry.listScopes(after)).filter((scope) => scope !== after)
    const counts = await Promise.all(
      scopes.map((scope) => {
        const [rows] = this.#keys.table(scope)
        return this.#connection.run(rows, ['EXISTS', rows], true)
      }),
    )
    return scopes.filter((_, index) => counts[index] === 1).slice(0, limit)
  }

  async eraseRows(scope: Scope): Promise<number> {
    return Number(await this.#connection.runScript(eraseScript, this.#keys.table(scope), []))
  }
}

/**
 * Formats the name of a row so that the order of bytes, by which Redis sorts, is that of UTF-16 code units: those above
 * U+007E become U+007F and four hexadecimal digits.
 */
const formatRowName = (key: TableKey): string => encodeOrdered(formatTableKey(key))
const formatPrefix = (prefix: readonly string[]): string => encodeOrdered(formatNamespace(prefix))
const parseRowName = (name: string): TableKey =>
  parseTableKey(
    name.replace(/\u007f([0-9a-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
  )

const encodeOrdered = (text: string): string =>
  text.replace(/[\u007f-\uffff]/g, (unit) => `\u007f${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Formats a value as `j` and JSON, or `b` and Base64. */
function formatValue(value: TableRow['value']): string {
  const packed = packValue(value)
  return typeof packed === 'string' ? `j${packed}` : `b${Buffer.from(packed).toString('base64')}`
}

function parseStoredRow({ namespace, key }: TableKey, stored: string): TableRow {
  const [revision = '', createdAt = '', updatedAt = ''] = stored.split(':', 3)
  const value = stored.slice(revision.length + createdAt.length + updatedAt.length + 3)
  const text = value.slice(1)
  return {
    namespace,
    key,
    value: unpackValue(value.startsWith('j') ? text : Buffer.from(text, 'base64')),
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    revision: Number(revision),
  }
}
