import type { Millis } from '../../domain/entry.ts'
import type { TokenBuckets } from '../../domain/ports.ts'
import type { RedisConnection } from './connection.ts'
import type { RedisKeys } from './keys.ts'
import type { Script } from './scripts/shared.ts'

/**
 * Stores the time in microseconds at which the bucket will be full again; a full bucket is not stored. Replies with the
 * microseconds until a token is there, 0 if one was taken.
 */
const takeScript: Script = {
  name: 'take-token',
  source: `
local minute = 60000000
local perToken = minute / tonumber(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local full = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local wait = full + perToken - now - minute
if wait > 0 then return string.format('%d', math.ceil(wait)) end
redis.call('SET', KEYS[1], string.format('%.0f', full + perToken), 'PX', 60000)
return '0'
`,
}

/** Token buckets in Redis. A bucket disappears when it is full. */
export class RedisTokenBuckets implements TokenBuckets {
  readonly #connection: RedisConnection
  readonly #keys: RedisKeys

  constructor(connection: RedisConnection, keys: RedisKeys) {
    this.#connection = connection
    this.#keys = keys
  }

  async take(bucket: string, perMinute: number): Promise<Millis> {
    const micros = await this.#connection.runScript(takeScript, [this.#keys.tokenBucket(bucket)], [String(perMinute)])
    return Number(micros) / 1_000
  }
}
