import { type About, aboutIn, type Millis, type Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Profile } from '../domain/profile.ts'
import { isExpired } from '../domain/session.ts'
import type { Memory } from '../memory.ts'
import { messageCost } from '../text/cost.ts'

/** Messages of a template that stand before memory. */
export type Preamble = { readonly messages: readonly ChatMessage[]; readonly tokens: Tokens }

/** A kind of session: how it remembers, how long it lives, and what its model is told first. */
export type Template = {
  readonly profile: Profile
  readonly idle?: Millis | undefined
  readonly age?: Millis | undefined
  readonly preamble?: string | undefined
}

/** Where a session is at home. */
export type Home = {
  readonly memory: Memory
  readonly preamble: Preamble
  readonly template: string | undefined
  /** The name of its profile, as headers can tell it. */
  readonly profile: string
}

/** The ways of remembering a server offers. */
export type Ways = {
  /** For a tenant itself: its key has no session half. */
  readonly scope: Profile
  /** For sessions that were begun without a template; undefined where sessions are not remembered. */
  readonly session: Profile | undefined
  readonly templates: Readonly<Record<string, Template>>
}

/** Where sessions are at home that were begun without a template, which may be all of them. */
type Plain = { readonly scope: Home; readonly session: Home; readonly isAll: boolean }

const none: Preamble = { messages: [], tokens: 0 }
/** So many sessions have their home at hand. */
const most = 10_000

/** One memory for each way of remembering, all on the same stores. */
export class Memories implements AsyncDisposable {
  private readonly open: (profile: Profile) => Promise<Memory>
  private ways: Ways
  private byProfile: Map<string, Memory>
  private plain: Plain
  private readonly homes = new Map<string, Home>()
  private readonly busy = new Map<Memory, number>()
  private readonly retired = new Set<Memory>()

  private constructor(open: (profile: Profile) => Promise<Memory>, ways: Ways, byProfile: Map<string, Memory>) {
    this.open = open
    this.ways = ways
    this.byProfile = byProfile
    this.plain = plainIn(ways, byProfile)
  }

  static async open(open: (profile: Profile) => Promise<Memory>, ways: Ways): Promise<Memories> {
    return new Memories(open, ways, await opened(open, ways))
  }

  /** A single memory for everything. */
  static of(memory: Memory): Memories {
    const ways: Ways = { scope: memory.profile, session: memory.profile, templates: {} }
    return new Memories(async () => memory, ways, new Map([[memory.profile.name, memory]]))
  }

  all(): readonly Memory[] {
    return [...new Set(this.byProfile.values())]
  }

  /** The memory of tenants. */
  get scopes(): Memory {
    return this.plain.scope.memory
  }

  /** The memory of sessions that were begun without a template. */
  get sessions(): Memory {
    return this.plain.session.memory
  }

  /** Whether sessions are remembered. */
  get hasSessions(): boolean {
    return this.ways.session !== undefined
  }

  get templates(): readonly string[] {
    return Object.keys(this.ways.templates)
  }

  /** Where a session is at home; `template` is what it is to be begun with, if it is not there yet. */
  async of(key: Key, template?: string): Promise<Home> {
    const home = this.atHand(key, template)
    if (home !== undefined) return home
    const name = formatKey(key)
    const known = this.homes.get(name)
    if (known !== undefined && (await this.isAtHome(known, key))) return known
    this.homes.delete(name)
    const { about, isThere } = await this.found(key)
    const chosen = about?.template ?? (isThere ? undefined : template)
    const found = this.homeOf(chosen)
    // What is not there yet may still be begun with a template.
    if (!isThere && chosen === undefined) return found
    if (!isThere) await this.begin(found, key, chosen as string)
    this.homes.set(name, found)
    const [oldest] = this.homes.keys()
    if (this.homes.size > most && oldest !== undefined) this.homes.delete(oldest)
    return found
  }

  /** The same where it can be told without looking at the session. */
  atHand(key: Key, template?: string): Home | undefined {
    if (key.id === '') return this.plain.scope
    if (template !== undefined) this.check(template)
    return this.plain.isAll ? this.plain.session : undefined
  }

  /** Begins a session of a template, before anything is said in it. */
  async begin({ memory }: Home, key: Key, template: string, more: Partial<About> = {}): Promise<void> {
    const { idle, age } = this.ways.templates[template] ?? {}
    await memory.describe(key, {
      template,
      ...(idle === undefined ? {} : { idle }),
      ...(age === undefined ? {} : { age }),
      ...more,
    })
  }

  /** What was ended or moved is at home nowhere. */
  forget(scope: string): void {
    for (const name of this.homes.keys()) if (name === scope || name.startsWith(`${scope}:`)) this.homes.delete(name)
  }

  /** Uses a memory for a while: one that is replaced meanwhile is closed when nobody uses it any more. */
  async using<T>(memory: Memory, work: () => Promise<T>): Promise<T> {
    this.enter(memory)
    try {
      return await work()
    } finally {
      const closing = this.leave(memory)
      if (closing !== undefined) await closing
    }
  }

  /** Begins to use a memory; whoever does must leave it. */
  enter(memory: Memory): void {
    this.busy.set(memory, (this.busy.get(memory) ?? 0) + 1)
  }

  /** Resolves when a memory that was replaced is closed; nothing, if it goes on. */
  leave(memory: Memory): Promise<void> | undefined {
    this.busy.set(memory, (this.busy.get(memory) ?? 1) - 1)
    return this.retired.size > 0 ? this.retire(memory) : undefined
  }

  /** Other ways of remembering from now on; what is kept stays. */
  async replace(ways: Ways): Promise<void> {
    const before = this.all()
    const byProfile = await opened(this.open, ways)
    this.plain = plainIn(ways, byProfile)
    this.byProfile = byProfile
    this.ways = ways
    this.homes.clear()
    for (const memory of before) this.retired.add(memory)
    // Who has been told its home a moment ago is about to use it.
    await new Promise((resolve) => setImmediate(resolve))
    for (const memory of before) await this.retire(memory)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.all(), ...this.retired].map((memory) => memory.close()))
  }

  private async retire(memory: Memory): Promise<void> {
    if (!this.retired.has(memory) || (this.busy.get(memory) ?? 0) > 0) return
    this.retired.delete(memory)
    this.busy.delete(memory)
    await memory.close()
  }

  private homeOf(name: string | undefined): Home {
    const template = name === undefined ? undefined : this.ways.templates[name]
    return template === undefined
      ? this.plain.session
      : homeIn(memoryOf(this.byProfile, template.profile), name, template.preamble)
  }

  /** Whether a session has begun and is not over, in whichever memory, and what is known about it. */
  private async found(key: Key): Promise<{ readonly isThere: boolean; readonly about: About | undefined }> {
    for (const { parts } of this.all()) {
      const head = await parts.sessions.head(key, 0)
      if (head.revision > 0 && !isExpired(head, parts.clock())) return { isThere: true, about: aboutIn(head.derived) }
    }
    return { isThere: false, about: undefined }
  }

  /** Whether a session is still the one that was at home here: one that is over begins anew, as whoever begins it says. */
  private async isAtHome({ memory: { parts }, template }: Home, key: Key): Promise<boolean> {
    const head = await parts.sessions.head(key, 0)
    return head.revision > 0 && !isExpired(head, parts.clock()) && aboutIn(head.derived)?.template === template
  }

  private check(template: string): void {
    if (Object.hasOwn(this.ways.templates, template)) return
    const known =
      this.templates.length === 0
        ? 'There are none; they are set in the configuration file.'
        : `There are ${this.templates.join(', ')}.`
    throw new MemoryError('bad-option', `There is no template ${JSON.stringify(template.slice(0, 40))}. ${known}`, {
      param: 'template',
    })
  }
}

function plainIn({ scope, session = scope, templates }: Ways, byProfile: ReadonlyMap<string, Memory>): Plain {
  return {
    scope: homeIn(memoryOf(byProfile, scope)),
    session: homeIn(memoryOf(byProfile, session)),
    isAll: Object.keys(templates).length === 0,
  }
}

function homeIn(memory: Memory, template?: string, words?: string): Home {
  const profile = encodeURIComponent(memory.profile.name.toWellFormed())
  if (words === undefined) return { memory, preamble: none, template, profile }
  const message = { role: 'system', content: words } as const
  return {
    memory,
    preamble: { messages: [message], tokens: messageCost(memory.tokenizer, message) },
    template,
    profile,
  }
}

function memoryOf(byProfile: ReadonlyMap<string, Memory>, profile: Profile): Memory {
  const memory = byProfile.get(profile.name)
  if (memory === undefined) throw new MemoryError('closed', `No memory is open for the profile ${profile.name}.`)
  return memory
}

async function opened(
  open: (profile: Profile) => Promise<Memory>,
  { scope, session, templates }: Ways,
): Promise<Map<string, Memory>> {
  const byProfile = new Map<string, Memory>()
  for (const profile of [scope, session, ...Object.values(templates).map((template) => template.profile)]) {
    if (profile !== undefined && !byProfile.has(profile.name)) byProfile.set(profile.name, await open(profile))
  }
  return byProfile
}
