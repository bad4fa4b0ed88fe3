import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import { findMetadata, type Millis } from '../domain/entry.ts'
import { anyObject, anyText, checkOption, integerAtLeast } from '../domain/error.ts'
import { formatKey, isInternalKey, parseKey, parseScope, type Scope } from '../domain/key.ts'
import type { SessionFilter, Store } from '../domain/ports.ts'
import type { MetadataFilter, SessionListItem } from '../domain/session.ts'

/** Options of `sessions`. */
export type SessionsOptions = {
  /** Only sessions of this scope. Default: of all scopes. */
  readonly scope?: Scope
  /** Only sessions whose metadata has these top-level fields. */
  readonly metadata?: MetadataFilter
  /** Starts after the session with this key. */
  readonly after?: string
  /** Maximum number of sessions; default 100. */
  readonly limit?: number
}

/** A session as `sessions` lists it. */
export type SessionSummary = Omit<SessionListItem, 'key'> & { readonly key: string }

const sessionsOptionChecks: OptionChecks<SessionsOptions> = {
  scope: anyText,
  metadata: anyObject,
  after: anyText,
  limit: integerAtLeast(1),
}
const defaultLimit = 100

/** Lists the sessions of a store that have neither expired nor moved, in order of their keys. */
export async function listSessions(
  store: Store,
  options: SessionsOptions,
  now: Millis,
): Promise<readonly SessionSummary[]> {
  checkOptions('sessions', options, sessionsOptionChecks)
  const { scope, metadata, after = '', limit = defaultLimit } = options
  if (metadata !== undefined) checkMetadataFilter(metadata)
  const filter = {
    after: after === '' ? '' : formatKey(parseKey(after)),
    ...(scope !== undefined && { scope: parseScope(scope) }),
    ...(metadata !== undefined && { metadata }),
  }
  const found: SessionSummary[] = []
  for (let page: readonly SessionListItem[] = [], last = filter.after; found.length < limit; ) {
    page = await findLiveSessions(store, { ...filter, after: last, limit: limit - found.length }, now)
    const heads = await Promise.all(page.map(({ key }) => store.readHead(key, 0)))
    const kept = page.filter((_, at) => findMetadata(heads[at]?.derived ?? [])?.movedTo === undefined)
    for (const { key, ...item } of kept) found.push({ key: formatKey(key), ...item })
    const end = page.at(-1)
    if (end === undefined) break
    last = formatKey(end.key)
  }
  return found
}

/** Throws `bad-option` unless all values of a filter are texts, numbers, booleans or null. */
function checkMetadataFilter(filter: MetadataFilter): void {
  for (const [name, value] of Object.entries(filter)) {
    const isPlain = value === null || ['string', 'number', 'boolean'].includes(typeof value)
    checkOption(`metadata.${name}`, value, isPlain, 'a text, a number, true, false or null')
  }
}

/** The first sessions that have not expired, without internal ones and scopes without messages. */
async function findLiveSessions(store: Store, filter: SessionFilter, now: Millis): Promise<readonly SessionListItem[]> {
  const { limit } = filter
  const found: SessionListItem[] = []
  for (let { after = '' } = filter; found.length < limit; ) {
    const page = await store.list({ ...filter, after, limit })
    for (const session of page) if (isVisible(session) && session.expiresAt > now) found.push(session)
    const last = page.at(-1)
    if (last === undefined) break
    after = formatKey(last.key)
  }
  return found.slice(0, limit)
}

const isVisible = ({ key, messages }: SessionListItem): boolean =>
  !isInternalKey(key) && (key.id !== '' || messages > 0)
