import { formatKey, type Key } from '../domain/key.ts'
import type { Model } from '../domain/ports.ts'
import { openaiModel } from '../models/openai.ts'

export type SessionModelOptions = {
  /** The base address of the model server. */
  readonly upstream: string
  /** The key for clients that send none of their own. */
  readonly apiKey?: string | undefined
  /** The model for all upkeep; without it, that of each session's newest request. */
  readonly model?: string | undefined
}

/** So many sessions have their model at hand; the others have theirs again with their next request. */
const most = 10_000

/** The model behind each session, for upkeep: the one its client asks, with the key its client uses. Both are kept in RAM alone. */
export class SessionModels {
  private readonly options: SessionModelOptions
  private readonly known = new Map<string, { readonly model: string; readonly authorization: string | undefined }>()

  constructor(options: SessionModelOptions) {
    this.options = options
  }

  /** Takes note of what a client asks for. */
  heard(key: Key, model: unknown, authorized: string | undefined): void {
    if (typeof model !== 'string' || model === '') return
    // A key of this server's own goes nowhere else.
    const authorization = authorized !== undefined && /\btk_/i.test(authorized) ? undefined : authorized
    const name = formatKey(key)
    this.known.delete(name)
    this.known.set(name, { model, authorization })
    const [oldest] = this.known.keys()
    if (this.known.size > most && oldest !== undefined) this.known.delete(oldest)
  }

  /** The model for a session's upkeep; none until its client has asked for something. */
  for(key: Key): Model | undefined {
    const { upstream, apiKey, model } = this.options
    const known = this.known.get(formatKey(key))
    const name = model ?? known?.model
    if (name === undefined) return undefined
    const headers = known?.authorization === undefined ? {} : { headers: { authorization: known.authorization } }
    // Upkeep asks once more by itself, and is in no hurry.
    return openaiModel({ tries: 1, baseUrl: upstream, model: name, apiKey: known?.authorization === undefined ? apiKey : undefined, ...headers })
  }
}
