import { apiPath, request } from '../../api/client.ts'
import type { Context, Fact, Knowledge, Page, Receipt, StoredReceipt, Summary } from '../../api/types.ts'
import { formatValue } from '../../format.ts'
import { type Resource, useResource } from '../../useResource.ts'
import type { DerivedTexts } from './promptPane.tsx'

/** A receipt without its ledger. */
export type Turn = Omit<Receipt, 'ledger'>

const maxTurns = 500

/** The turns of a session, oldest first. */
export const useTurns = (key: string): Resource<readonly Turn[]> =>
  useResource(
    async (signal) => {
      const { items } = await request<Page<StoredReceipt>>(
        apiPath(['api', 'sessions', key, 'receipts'], { limit: maxTurns, ledger: false }),
        { signal },
      )
      return items.filter((receipt): receipt is Receipt => !('purpose' in receipt)).reverse()
    },
    [key],
    (event) => event.type === 'receipt' && event.key === key,
  )

/** A receipt with its ledger; undefined without an id. */
export const useReceipt = (id: string | undefined): Resource<Receipt | undefined> =>
  useResource(
    async (signal) => (id === undefined ? undefined : request<Receipt>(apiPath(['api', 'receipts', id]), { signal })),
    [id],
  )

/** The context that a model would get now, with placeholders for secrets; undefined unless it is wanted. */
export const useContextNow = (key: string, isWanted: boolean): Resource<Context | undefined> =>
  useResource(
    async (signal) =>
      isWanted
        ? request<Context>(apiPath(['api', 'sessions', key, 'context'], { masked: true }), { signal })
        : undefined,
    [key, isWanted],
    (event) => isWanted && event.key === key,
  )

/** Texts of the derived entries that prompts of a session may contain. */
export function useDerivedTexts(key: string): Resource<DerivedTexts> {
  const scope = key.split(':')[0] ?? key
  return useResource(
    async (signal) => {
      const read = <T>(...segments: readonly string[]): Promise<Page<T>> =>
        request(apiPath(['api', ...segments], { limit: 500 }), { signal })
      const [summaries, facts, knowledge] = await Promise.all([
        read<Summary>('sessions', key, 'summaries'),
        read<Fact>('sessions', key, 'facts'),
        read<Knowledge>('scopes', scope, 'knowledge'),
      ])
      return new Map([
        ...summaries.items.map(({ id, text }) => [`session ${id}`, text] as const),
        ...facts.items.map(({ id, key: name, value }) => [`session ${id}`, `${name}: ${formatValue(value)}`] as const),
        ...knowledge.items.map(
          ({ id, key: name, value }) => [`scope ${id}`, `${name}: ${formatValue(value)}`] as const,
        ),
      ])
    },
    [key],
    (event) => event.key === key || event.key === scope,
  )
}
