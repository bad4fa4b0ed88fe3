import type { Millis } from '../../domain/entry.ts'
import type { TokenBuckets } from '../../domain/ports.ts'
import type { Database } from './database.ts'
import { escapeText } from './text.ts'

/** Token buckets in a table that is not logged. Each token takes one round trip and waits for no disk. */
export class PostgresTokenBuckets implements TokenBuckets {
  readonly #database: Database
  readonly #takesPerCleanup: number
  #takes = 0

  /** Deletes full buckets each time so many tokens were taken. */
  constructor(database: Database, takesPerCleanup = 1_000) {
    this.#database = database
    this.#takesPerCleanup = takesPerCleanup
  }

  async take(bucket: string, perMinute: number): Promise<Millis> {
    if (++this.#takes % this.#takesPerCleanup === 0) this.#database.call('drop_full_buckets', []).catch(() => undefined)
    return this.#database.call<number>('take_token', [escapeText(bucket), perMinute])
  }
}
