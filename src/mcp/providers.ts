import { check, MemoryError } from '../domain/error.ts'
import { ask } from './providers/ask.ts'
import { before } from './providers/before.ts'
import type { About, Occasion, ProviderConfig } from './providers/config.ts'
import type { Link } from './providers/link.ts'
import { whyOf } from './providers/why.ts'
import type { Level } from './tool.ts'

export type { ProviderConfig } from './providers/config.ts'

/** What a provider says: data, to be fenced and labelled wherever it is shown. */
export type Provided = { readonly from: string; readonly text: string }
export type Gathered = {
  readonly provided: readonly Provided[]
  readonly degraded: readonly { readonly step: string; readonly why: string }[]
}
export type ProvidersOptions = { readonly log: (level: Level, message: string) => void }

/** How long a provider may take, from start to answer, unless its configuration says otherwise. */
const patience = 5_000

/**
 * Other MCP servers that are asked for context when a session is saved or restored. They are asked all at once; whoever
 * hangs, dies or talks nonsense is left out, said so, and started anew the next time.
 *
 * @example
 * const providers = new Providers({ tickets: { command: 'tickets-mcp', tool: 'search', arguments: { query: '{text}' } } }, { log })
 * const { provided, degraded } = await providers.gather('restore', { workspace: 'default', session: 'session_1', text: 'Fix the login' })
 */
export class Providers {
  readonly #configs: readonly (readonly [name: string, config: ProviderConfig])[]
  readonly #log: ProvidersOptions['log']
  /** Programs that are running; addresses are connected to each time. */
  readonly #links = new Map<string, Promise<Link>>()
  readonly #ending = new Set<Promise<void>>()

  constructor(configs: Readonly<Record<string, ProviderConfig>>, { log }: ProvidersOptions) {
    this.#configs = Object.entries(configs)
    this.#log = log
    for (const [name, config] of this.#configs) {
      check(
        `providers.${name}`,
        Object.keys(config),
        (config.tool === undefined) !== (config.resource === undefined),
        'given either a tool or a resource',
      )
      check(`providers.${name}.timeout`, config.timeout, (config.timeout ?? 1) > 0, 'a time in milliseconds')
    }
  }

  /** What the providers that are asked on this occasion have to say, in the order they are configured in. */
  async gather(on: Occasion, about: About, signal?: AbortSignal): Promise<Gathered> {
    const asked = this.#configs.filter(([, config]) => (config.on ?? ['save', 'restore']).includes(on))
    const answers = await Promise.all(asked.map(([name, config]) => this.#ask(name, config, about, signal)))
    if (signal?.aborted)
      throw new MemoryError('aborted', 'The request was stopped by the caller.', { cause: signal.reason })
    return {
      provided: answers.flatMap((answer) => ('text' in answer && answer.text !== '' ? [answer] : [])),
      degraded: answers.flatMap((answer) => ('why' in answer ? [answer] : [])),
    }
  }

  /** Ends what was started, and waits until it is gone. */
  async close(): Promise<void> {
    for (const name of [...this.#links.keys()]) this.#end(name, this.#links.get(name), false)
    await Promise.all(this.#ending)
  }

  async #ask(
    name: string,
    config: ProviderConfig,
    about: About,
    signal: AbortSignal | undefined,
  ): Promise<Provided | Gathered['degraded'][number]> {
    const limit = AbortSignal.timeout(config.timeout ?? patience)
    const stop = signal === undefined ? limit : AbortSignal.any([signal, limit])
    const isOwn = 'url' in config
    // A program is everybody's: it is started, and goes on, also if whoever was the first to ask gives up.
    const link = this.#linkTo(name, config, isOwn ? stop : limit)
    try {
      const text = await before(
        stop,
        link.then(({ client }) => ask(client, config, about, stop)),
      )
      if (isOwn) this.#end(name, link, false)
      return { from: name, text }
    } catch (error) {
      const isGivenUp = signal?.aborted === true && !limit.aborted
      if (isOwn || !isGivenUp) this.#end(name, link, true)
      const why = whyOf(error, limit.aborted, config)
      if (!isGivenUp) this.#log('warning', `The context provider ${name} is left out: ${why}.`)
      return { step: `provider ${name}`, why }
    }
  }

  #linkTo(name: string, config: ProviderConfig, stop: AbortSignal): Promise<Link> {
    const known = this.#links.get(name)
    if (known !== undefined) return known
    // The client is loaded when there is somebody to ask: most servers start without.
    const link = import('./providers/link.ts').then(({ openLink }) => openLink(config, stop))
    if ('command' in config) this.#links.set(name, link)
    // Whoever asked may have given up before it failed.
    link.catch(() => this.#forget(name, link))
    return link
  }

  #forget(name: string, link: Promise<Link> | undefined): void {
    if (this.#links.get(name) === link) this.#links.delete(name)
  }

  /** Nobody waits for the end of a provider but `close`. */
  #end(name: string, link: Promise<Link> | undefined, isFaulty: boolean): void {
    this.#forget(name, link)
    const ending = (link ?? Promise.reject()).then(({ end }) => end(isFaulty)).catch(() => undefined)
    this.#ending.add(ending)
    void ending.then(() => this.#ending.delete(ending))
  }
}
