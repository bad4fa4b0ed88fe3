import { formatKey } from '../domain/key.ts'
import type { SessionFilter } from '../domain/ports.ts'
import { matchesMetadata, type SessionListItem } from '../domain/session.ts'
import { yieldWhenLong } from './yieldToEventLoop.ts'

/** Sessions read at a time: about 2 ms, with metadata of the maximum size 40 ms. */
const pageSize = 250

/**
 * Lists sessions with a function that cannot filter by metadata. Many are read in pages, between which other work can
 * run, until enough match.
 */
export async function listInPages(
  { metadata, ...filter }: SessionFilter,
  listPage: (page: Omit<SessionFilter, 'metadata'>) => Promise<readonly SessionListItem[]>,
): Promise<readonly SessionListItem[]> {
  if (metadata === undefined && filter.limit <= pageSize) return listPage(filter)
  const found: SessionListItem[] = []
  for (let { after = '' } = filter; ; ) {
    const page = await listPage({ ...filter, after, limit: pageSize })
    found.push(...page.filter((item) => metadata === undefined || matchesMetadata(item.metadata, metadata)))
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize || found.length >= filter.limit)
      return found.slice(0, filter.limit)
    after = formatKey(last.key)
    await yieldWhenLong()
  }
}
