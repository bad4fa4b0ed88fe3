import { createHash } from 'node:crypto'
import { MemoryError } from '../../domain/error.ts'
import { isErrorReply, toMemoryError } from './errors.ts'
import type { Script } from './scripts/shared.ts'
import { checkServers } from './serverChecks.ts'
import type { RedisTransport, Reply } from './transport.ts'
import type { RedisAddress } from './url.ts'

/** Time between two checks of a server whose settings are wrong. */
const recheckIntervalMs = 1_000

/**
 * Runs commands and scripts. After every new connection the settings of the servers are checked again, before anything
 * else is sent.
 */
export class RedisConnection {
  readonly #transport: RedisTransport
  readonly #settings: RedisAddress['settings']
  readonly #digests = new Map<Script, string>()
  #check: Promise<void> | undefined
  #isClosed = false

  constructor(transport: RedisTransport, settings: RedisAddress['settings']) {
    this.#transport = transport
    this.#settings = settings
    transport.onConnect = () => {
      this.#check = undefined
    }
  }

  get address(): string {
    return this.#transport.address
  }

  /** Checks the settings of the servers, unless it was done since the last connection. */
  check(): Promise<void> {
    if (this.#isClosed) throw new MemoryError('closed', 'This store is closed. Open it again with redisStore.')
    this.#check ??= this.#runCheck()
    return this.#check
  }

  /** Runs a command. Commands that only read are repeated once after the connection was lost. */
  async run(key: string, command: readonly string[], isRepeatable = false): Promise<Reply> {
    await this.check()
    return this.#send(key, command, isRepeatable)
  }

  /** Runs a script, which is loaded first if the server does not know it: after a restart, or on another shard. */
  async runScript(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    isRepeatable = false,
  ): Promise<Reply> {
    await this.check()
    const [key = ''] = keys
    const rest = [String(keys.length), ...keys, ...args]
    try {
      return await this.#transport.send(key, ['EVALSHA', this.#digestOf(script), ...rest])
    } catch (error) {
      const isUnknown = isErrorReply(error) && error.message.startsWith('NOSCRIPT')
      if (isErrorReply(error) ? !isUnknown : !isRepeatable) throw toMemoryError(error, this.address)
    }
    return this.#send(key, ['EVAL', script.source, ...rest], isRepeatable)
  }

  /** Calls `onMessage` for the messages of a channel, and `onGap` when some may have been missed. */
  async subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): Promise<void> {
    try {
      await this.#transport.subscribe(channel, onMessage, onGap)
    } catch (error) {
      throw toMemoryError(error, this.address)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#transport.close()
  }

  async #send(key: string, command: readonly string[], isRepeatable: boolean): Promise<Reply> {
    for (let attempts = 1; ; attempts++) {
      try {
        return await this.#transport.send(key, command)
      } catch (error) {
        if (!isRepeatable || attempts === 2 || isErrorReply(error)) throw toMemoryError(error, this.address)
      }
    }
  }

  async #runCheck(): Promise<void> {
    try {
      await checkServers(this.#transport, this.#settings)
    } catch (error) {
      // Allows another check, but not one for every command.
      setTimeout(() => {
        this.#check = undefined
      }, recheckIntervalMs).unref()
      throw toMemoryError(error, this.address)
    }
  }

  #digestOf(script: Script): string {
    const known = this.#digests.get(script)
    if (known !== undefined) return known
    const digest = createHash('sha1').update(script.source).digest('hex')
    this.#digests.set(script, digest)
    return digest
  }
}
