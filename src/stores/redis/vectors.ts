import { createHash } from 'node:crypto'
import { type Entry, getEntryText, isBlank, isInternal, parseMessageId } from '../../domain/entry.ts'
import { formatKey, type Key, parseStoredKey, type Scope } from '../../domain/key.ts'
import type { EntryVector, SearchTarget, StoredVector, UnembeddedPage } from '../../domain/ports.ts'
import type { IndexedVector } from '../../search/vectorIndex.ts'
import type { RedisConnection } from './connection.ts'
import type { RedisKeys } from './keys.ts'
import { formatName, parseDerivedEntry, parseMessage, parseName } from './rows.ts'
import type { Script } from './scripts/shared.ts'
import type { Reply } from './transport.ts'

/**
 * Stores a vector, unless its entry was erased or changed: the caller sends the SHA-1 of the stored entry that the
 * vector was computed from. A vector is stored as MODEL NUL KIND NUL TIME NUL BASE64.
 */
const storeScript: Script = {
  name: 'store-vector',
  source: `
local metaKey, rowKey, messagesKey, derivedKey, vectorsKey, positionsKey = unpack(KEYS)
local epoch, name, entry, sequence, digest, value = unpack(ARGV)
if redis.call('HGET', rowKey, 'epoch') ~= epoch then return 0 end
local stored
if sequence == '' then stored = redis.call('HGET', derivedKey, entry)
else stored = redis.call('ZRANGEBYSCORE', messagesKey, sequence, sequence)[1] end
if not stored or redis.sha1hex(stored) ~= digest then return 0 end
redis.call('HSET', vectorsKey, name, value)
redis.call('ZADD', positionsKey, redis.call('HINCRBY', metaKey, 'vectors', 1), name)
local left = redis.call('PTTL', metaKey)
for _, key in ipairs({ vectorsKey, positionsKey }) do
  if left >= 0 then redis.call('PEXPIRE', key, left) else redis.call('PERSIST', key) end
end
return 1
`,
}

/** Lists vectors of a model after a position, of a scope or of one session, as triples of position, name and value. */
const listScript: Script = {
  name: 'list-vectors',
  source: `
local vectorsKey, positionsKey = unpack(KEYS)
local after, limit, model, prefix = ARGV[1], tonumber(ARGV[2]), ARGV[3] .. '\\0', ARGV[4]
local found, next = {}, after
while #found < 3 * limit do
  local page = redis.call('ZRANGEBYSCORE', positionsKey, '(' .. next, '+inf', 'WITHSCORES', 'LIMIT', 0, 500)
  for n = 1, #page, 2 do
    next = page[n + 1]
    local value = string.sub(page[n], 1, #prefix) == prefix and redis.call('HGET', vectorsKey, page[n])
    if value and string.sub(value, 1, #model) == model then
      found[#found + 1] = next
      found[#found + 1] = page[n]
      found[#found + 1] = value
      if #found == 3 * limit then break end
    end
  end
  if #page < 1000 then break end
end
return found
`,
}

/** Counts the vectors of a model. */
const countScript: Script = {
  name: 'count-vectors',
  source: `
local count, model = 0, ARGV[1] .. '\\0'
for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
  if string.sub(value, 1, #model) == model then count = count + 1 end
end
return count
`,
}

/** Reads the entries of sessions page by page. */
export type EntrySource = {
  /** Lists all keys in order, from one on. */
  listKeys(from: string): AsyncIterable<Key>
  listScopes(): Promise<readonly Scope[]>
  readEntries(key: Key): Promise<{ readonly epoch: number; readonly entries: readonly Entry[] }>
}

/** Vectors of the entries of sessions. */
export class RedisVectors {
  readonly #connection: RedisConnection
  readonly #keys: RedisKeys
  readonly #source: EntrySource

  constructor(connection: RedisConnection, keys: RedisKeys, source: EntrySource) {
    this.#connection = connection
    this.#keys = keys
    this.#source = source
  }

  async listUnembedded(model: string, after: string, limit: number): Promise<UnembeddedPage> {
    const found: UnembeddedPage['entries'][number][] = []
    const [from = '', skip = '0'] = after.split(' ')
    for await (const key of this.#source.listKeys(from)) {
      const name = formatKey(key)
      const { epoch, entries } = await this.#source.readEntries(key)
      const models = await this.#readModels(key, entries)
      for (let at = name === from ? Number(skip) : 0; at < entries.length; at++) {
        const entry = entries[at] as Entry
        if (!isEmbeddable(entry) || models[at] === model) continue
        found.push({ key, id: entry.id, epoch, text: getEntryText(entry) })
        if (found.length === limit) return { entries: found, next: `${name} ${at + 1}` }
      }
    }
    return { entries: found, next: undefined }
  }

  async store(model: string, vectors: readonly EntryVector[]): Promise<number> {
    const results = await Promise.all(vectors.map((vector) => this.#storeOne(model, vector)))
    return results.filter(Boolean).length
  }

  async count(model: string): Promise<{ readonly done: number; readonly total: number }> {
    const scopes = await this.#source.listScopes()
    const counts = await Promise.all(
      scopes.map((scope) =>
        this.#connection.runScript(countScript, this.#keys.vectors(scope).slice(0, 1), [model], true),
      ),
    )
    let total = 0
    for await (const key of this.#source.listKeys(''))
      total += (await this.#source.readEntries(key)).entries.filter(isEmbeddable).length
    return { done: counts.reduce<number>((sum, count) => sum + Number(count), 0), total }
  }

  async list(
    { scope, id }: SearchTarget,
    model: string,
    after: number,
    limit: number,
  ): Promise<{ readonly vectors: readonly IndexedVector[]; readonly next: number }> {
    const prefix = id === undefined ? '' : `${id} `
    const args = [String(after), String(limit), model, prefix]
    const found = (await this.#connection.runScript(
      listScript,
      this.#keys.vectors(scope),
      args,
      true,
    )) as readonly Reply[]
    const vectors: IndexedVector[] = []
    let next = after
    for (let at = 0; at < found.length; at += 3) {
      next = Number(found[at])
      vectors.push(parseVector(scope, String(found[at + 1]), String(found[at + 2])))
    }
    return { vectors, next }
  }

  async read(key: Key, id: string): Promise<StoredVector | undefined> {
    const [vectors] = this.#keys.vectors(key.scope)
    const name = formatVectorName(key, id)
    const value = await this.#connection.run(vectors, ['HGET', vectors, name], true)
    if (typeof value !== 'string') return undefined
    return { model: modelOf(value), values: parseVector(key.scope, name, value).values }
  }

  async #storeOne(model: string, { key, id, epoch, text, values }: EntryVector): Promise<boolean> {
    const sequence = parseMessageId(id)
    const stored = await this.#readStored(key, id, sequence)
    const entry = stored && (sequence === undefined ? parseDerivedEntry(stored) : parseMessage(stored))
    if (stored === undefined || !entry || getEntryText(entry) !== text) return false
    const digest = createHash('sha1').update(stored).digest('hex')
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength)
    const value = [model, entry.kind, String(entry.at), bytes.toString('base64')].join('\0')
    const keys = [
      this.#keys.meta(key.scope),
      this.#keys.row(key),
      this.#keys.messages(key),
      this.#keys.derived(key),
      ...this.#keys.vectors(key.scope),
    ]
    const args = [String(epoch), formatVectorName(key, id), formatName(id), String(sequence ?? ''), digest, value]
    return (await this.#connection.runScript(storeScript, keys, args, true)) === 1
  }

  async #readStored(key: Key, id: string, sequence: number | undefined): Promise<string | undefined> {
    if (sequence === undefined) {
      const derived = this.#keys.derived(key)
      return (
        ((await this.#connection.run(derived, ['HGET', derived, formatName(id)], true)) as string | null) ?? undefined
      )
    }
    const messages = this.#keys.messages(key)
    const range = ['ZRANGEBYSCORE', messages, String(sequence), String(sequence)]
    return ((await this.#connection.run(messages, range, true)) as readonly string[])[0]
  }

  /** Returns the model of each entry's vector; undefined without a vector. */
  async #readModels(key: Key, entries: readonly Entry[]): Promise<readonly (string | undefined)[]> {
    if (entries.length === 0) return []
    const [vectors] = this.#keys.vectors(key.scope)
    const names = entries.map(({ id }) => formatVectorName(key, id))
    const values = (await this.#connection.run(vectors, ['HMGET', vectors, ...names], true)) as readonly (
      | string
      | null
    )[]
    return values.map((value) => (value === null ? undefined : modelOf(value)))
  }
}

const isEmbeddable = (entry: Entry): boolean =>
  entry.kind === 'message' ? !isBlank(entry.content) : !isInternal(entry)

const formatVectorName = ({ id }: Key, entry: string): string => `${id} ${formatName(entry)}`

const modelOf = (value: string): string => value.slice(0, value.indexOf('\0'))

function parseVector(scope: Scope, name: string, value: string): IndexedVector {
  const space = name.indexOf(' ')
  const session = name.slice(0, space)
  const [, kind, at, data = ''] = value.split('\0')
  const bytes = Uint8Array.from(Buffer.from(data, 'base64'))
  return {
    key: parseStoredKey(session === '' ? scope : `${scope}:${session}`),
    id: parseName(name.slice(space + 1)),
    kind: kind as Entry['kind'],
    at: Number(at),
    values: new Float32Array(bytes.buffer),
  }
}
