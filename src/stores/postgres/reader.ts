import type { Scope } from '../../domain/key.ts'
import type { Database } from './database.ts'

/** A request of the SQL function `read`. */
export type ReadRequest = { readonly read: string; readonly [field: string]: unknown }

type Waiting = {
  readonly request: ReadRequest
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}

/** Requests in one round trip: each of them is a part of one statement, which must not run for long. */
const maxBatchRequests = 16

/** Reads from the database. Requests of one scope in the same turn of the event loop share a round trip. */
export class BatchReader {
  private readonly database: Database
  private readonly waiting = new Map<Scope, Waiting[]>()

  constructor(database: Database) {
    this.database = database
  }

  read<T>(scope: Scope, request: ReadRequest): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const batch = this.waiting.get(scope)
      const waiting = { request, resolve, reject }
      if (batch !== undefined && batch.length < maxBatchRequests) {
        batch.push(waiting)
        return
      }
      const started = [waiting]
      this.waiting.set(scope, started)
      setImmediate(() => {
        if (this.waiting.get(scope) === started) this.waiting.delete(scope)
        void this.send(scope, started)
      })
    })
  }

  private async send(scope: Scope, batch: readonly Waiting[]): Promise<void> {
    try {
      const requests = JSON.stringify(batch.map(({ request }) => request))
      const results = await this.database.call<readonly never[]>('read', [scope, requests], 'always')
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as never)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}
