import { findMetadata, type Millis, type SessionMetadata, type Tokens } from '../domain/entry.ts'
import { MemoryError, shortenText } from '../domain/error.ts'
import { formatKey, isInScope, type Key } from '../domain/key.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { isExpired } from '../domain/session.ts'
import { internalsOf, type Memory } from '../memory.ts'
import { countMessageTokens } from '../text/cost.ts'

/** System messages of a template, sent before memory. */
export type Preamble = { readonly messages: readonly ChatMessage[]; readonly tokens: Tokens }

/** A kind of session: its profile, lifetimes and system text. */
export type Template = {
  readonly profile: Profile
  readonly idle?: Millis | undefined
  readonly age?: Millis | undefined
  readonly preamble?: string | undefined
}

/** The memory of one session. */
export type ResolvedMemory = {
  readonly memory: Memory
  readonly preamble: Preamble
  readonly template: string | undefined
  /** Name of the profile, encoded for a header. */
  readonly profileHeader: string
}

/** Profiles of the server. */
export type ProfileConfig = {
  /** For keys without a session half. */
  readonly scope: Profile
  /** For sessions without a template; undefined when session memory is off. */
  readonly session: Profile | undefined
  readonly templates: Readonly<Record<string, Template>>
}

/** Memory of keys without a template; `isAll` when no templates are configured. */
type DefaultMemory = {
  readonly scope: ResolvedMemory
  readonly session: ResolvedMemory
  readonly isAll: boolean
}

const noPreamble: Preamble = { messages: [], tokens: 0 }
const maxCachedSessions = 10_000

/** Opens one memory per profile, all on the same stores, and resolves the memory of each session. */
export class MemoryRegistry implements AsyncDisposable {
  private readonly open: (profile: Profile) => Promise<Memory>
  private config: ProfileConfig
  private byProfile: Map<string, Memory>
  private defaults: DefaultMemory
  /** Memory of each session begun from a template, by key. */
  private readonly bySession = new LruCache<string, ResolvedMemory>({ maxEntries: maxCachedSessions })
  private readonly useCounts = new Map<Memory, number>()
  /** Replaced memories that are still in use. */
  private readonly retired = new Set<Memory>()

  private constructor(
    open: (profile: Profile) => Promise<Memory>,
    config: ProfileConfig,
    byProfile: Map<string, Memory>,
  ) {
    this.open = open
    this.config = config
    this.byProfile = byProfile
    this.defaults = resolveDefaults(config, byProfile)
  }

  static async open(open: (profile: Profile) => Promise<Memory>, config: ProfileConfig): Promise<MemoryRegistry> {
    return new MemoryRegistry(open, config, await openMemories(open, config))
  }

  /** Uses a single memory for everything. */
  static resolve(memory: Memory): MemoryRegistry {
    const config: ProfileConfig = { scope: memory.profile, session: memory.profile, templates: {} }
    return new MemoryRegistry(async () => memory, config, new Map([[memory.profile.name, memory]]))
  }

  all(): readonly Memory[] {
    return [...new Set(this.byProfile.values())]
  }

  /** One memory of each store of sessions. */
  bySessionStore(): ReadonlyMap<Store, Memory> {
    return new Map(this.all().map((memory) => [internalsOf(memory).sessions, memory]))
  }

  /** Memory of tenants. */
  get scopes(): Memory {
    return this.defaults.scope.memory
  }

  /** Memory of sessions without a template. */
  get sessions(): Memory {
    return this.defaults.session.memory
  }

  /** True when session memory is on. */
  get hasSessions(): boolean {
    return this.config.session !== undefined
  }

  get templates(): readonly string[] {
    return Object.keys(this.config.templates)
  }

  /** Resolves the memory of a session. A session that does not exist yet begins from `template`, if given. */
  async resolve(key: Key, template?: string): Promise<ResolvedMemory> {
    const immediate = this.resolveCached(key, template)
    if (immediate !== undefined) return immediate
    const name = formatKey(key)
    const cached = this.bySession.get(name)
    if (cached !== undefined && (await this.isCurrent(cached, key))) return cached
    this.bySession.delete(name)
    const { about, exists } = await this.findSession(key)
    const chosen = about?.template ?? (exists ? undefined : template)
    const resolved = this.resolveTemplate(chosen)
    // A session that does not exist may still begin from a template later.
    if (!exists && chosen === undefined) return resolved
    if (!exists) await this.beginSession(resolved, key, chosen as string)
    this.bySession.set(name, resolved)
    return resolved
  }

  /** Resolves without reading the session, when that is possible. Throws for an unknown template. */
  resolveCached(key: Key, template?: string): ResolvedMemory | undefined {
    if (key.id === '') return this.defaults.scope
    if (template !== undefined) this.checkTemplate(template)
    return this.defaults.isAll ? this.defaults.session : undefined
  }

  /** Begins a session from a template. */
  async beginSession(
    { memory }: ResolvedMemory,
    key: Key,
    template: string,
    more: Partial<SessionMetadata> = {},
  ): Promise<void> {
    const { idle, age } = this.config.templates[template] ?? {}
    await memory.setMetadata(key, {
      template,
      ...(idle !== undefined && { idle }),
      ...(age !== undefined && { age }),
      ...more,
    })
  }

  /** Drops cached sessions of a scope, after one was ended or transferred. */
  dropCached(scope: string): void {
    this.bySession.deleteWhere((name) => isInScope(name, scope))
  }

  /** Keeps a memory open while `work` runs, even when the configuration replaces it meanwhile. */
  async using<T>(memory: Memory, work: () => Promise<T>): Promise<T> {
    this.useCounts.set(memory, (this.useCounts.get(memory) ?? 0) + 1)
    try {
      return await work()
    } finally {
      this.useCounts.set(memory, (this.useCounts.get(memory) ?? 1) - 1)
      if (this.retired.size > 0) await this.closeIfUnused(memory)
    }
  }

  /** Switches to other profiles; stored data stays. */
  async replace(config: ProfileConfig): Promise<void> {
    const replaced = this.all()
    const byProfile = await openMemories(this.open, config)
    this.defaults = resolveDefaults(config, byProfile)
    this.byProfile = byProfile
    this.config = config
    this.bySession.clear()
    for (const memory of replaced) this.retired.add(memory)
    // Requests that have just resolved a memory call `using` in this tick.
    await new Promise((resolve) => setImmediate(resolve))
    for (const memory of replaced) await this.closeIfUnused(memory)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.all(), ...this.retired].map((memory) => memory.close()))
  }

  private async closeIfUnused(memory: Memory): Promise<void> {
    if (!this.retired.has(memory) || (this.useCounts.get(memory) ?? 0) > 0) return
    this.retired.delete(memory)
    this.useCounts.delete(memory)
    await memory.close()
  }

  private resolveTemplate(name: string | undefined): ResolvedMemory {
    const template = name === undefined ? undefined : this.config.templates[name]
    return template === undefined
      ? this.defaults.session
      : resolveMemory(memoryOf(this.byProfile, template.profile), name, template.preamble)
  }

  /** Looks for a live session in all memories. */
  private async findSession(
    key: Key,
  ): Promise<{ readonly exists: boolean; readonly about: SessionMetadata | undefined }> {
    for (const memory of this.all()) {
      const { sessions, clock } = internalsOf(memory)
      const head = await sessions.readHead(key, 0)
      if (head.revision > 0 && !isExpired(head, clock())) return { exists: true, about: findMetadata(head.derived) }
    }
    return { exists: false, about: undefined }
  }

  /** True while the session is the one that was cached; an expired session may begin again from another template. */
  private async isCurrent({ memory, template }: ResolvedMemory, key: Key): Promise<boolean> {
    const { sessions, clock } = internalsOf(memory)
    const head = await sessions.readHead(key, 0)
    return head.revision > 0 && !isExpired(head, clock()) && findMetadata(head.derived)?.template === template
  }

  private checkTemplate(template: string): void {
    if (Object.hasOwn(this.config.templates, template)) return
    const known =
      this.templates.length === 0
        ? 'None are configured; add templates to the configuration file.'
        : `Use one of: ${this.templates.join(', ')}.`
    throw new MemoryError('bad-option', `Unknown template ${JSON.stringify(shortenText(template, 40))}. ${known}`, {
      param: 'template',
    })
  }
}

function resolveDefaults(
  { scope, session = scope, templates }: ProfileConfig,
  byProfile: ReadonlyMap<string, Memory>,
): DefaultMemory {
  return {
    scope: resolveMemory(memoryOf(byProfile, scope)),
    session: resolveMemory(memoryOf(byProfile, session)),
    isAll: Object.keys(templates).length === 0,
  }
}

function resolveMemory(memory: Memory, template?: string, systemText?: string): ResolvedMemory {
  const profile = encodeURIComponent(memory.profile.name.toWellFormed())
  if (systemText === undefined) return { memory, preamble: noPreamble, template, profileHeader: profile }
  const message = { role: 'system', content: systemText } as const
  const tokens = countMessageTokens(memory.tokenizer, message)
  return { memory, preamble: { messages: [message], tokens }, template, profileHeader: profile }
}

function memoryOf(byProfile: ReadonlyMap<string, Memory>, profile: Profile): Memory {
  const memory = byProfile.get(profile.name)
  if (memory === undefined) throw new MemoryError('closed', `No memory is open for profile ${profile.name}.`)
  return memory
}

async function openMemories(
  open: (profile: Profile) => Promise<Memory>,
  { scope, session, templates }: ProfileConfig,
): Promise<Map<string, Memory>> {
  const byProfile = new Map<string, Memory>()
  for (const profile of [scope, session, ...Object.values(templates).map((template) => template.profile)]) {
    if (profile !== undefined && !byProfile.has(profile.name)) byProfile.set(profile.name, await open(profile))
  }
  return byProfile
}
