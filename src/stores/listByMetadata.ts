import { formatKey } from '../domain/key.ts'
import type { SessionFilter } from '../domain/ports.ts'
import { matchesMetadata, type SessionListItem } from '../domain/session.ts'
import { yieldToEventLoop } from './yieldToEventLoop.ts'

/** Sessions read at a time: about 2 ms. */
const pageSize = 250

/** Lists sessions with a function that cannot filter by metadata: reads pages until enough sessions match. */
export async function listByMetadata(
  { metadata, ...filter }: SessionFilter,
  listPage: (page: Omit<SessionFilter, 'metadata'>) => Promise<readonly SessionListItem[]>,
): Promise<readonly SessionListItem[]> {
  if (metadata === undefined) return listPage(filter)
  const found: SessionListItem[] = []
  for (let { after = '' } = filter; ; ) {
    const page = await listPage({ ...filter, after, limit: pageSize })
    found.push(...page.filter((item) => matchesMetadata(item.metadata, metadata)))
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize || found.length >= filter.limit)
      return found.slice(0, filter.limit)
    after = formatKey(last.key)
    await yieldToEventLoop()
  }
}
