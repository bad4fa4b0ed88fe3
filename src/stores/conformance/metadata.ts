import { type Json, metadataId, type SessionMetadata } from '../../domain/entry.ts'
import { type Key, parseKey } from '../../domain/key.ts'
import type { SessionFilter, Store } from '../../domain/ports.ts'
import {
  type ConformanceChecks,
  expectEqual,
  formatKeys,
  key,
  newChange,
  newFact,
  newMessage,
  otherScope,
  otherSession,
} from './fixtures.ts'

const newMetadata = (metadata?: Json): SessionMetadata => ({
  kind: 'about',
  id: metadataId,
  at: 1_000,
  template: 'support',
  ...(metadata !== undefined && { metadata }),
  sources: [],
})

const setMetadata = (store: Store, session: Key, metadata?: Json) =>
  store.commit(
    newChange(`${session.scope} ${session.id} ${JSON.stringify(metadata)}`, {
      key: session,
      put: [newMetadata(metadata), newFact('f1', 'x')],
    }),
  )

/** Listing sessions by their metadata. */
export const metadataChecks: ConformanceChecks = {
  'list › of sessions with metadata › returns it': async (store) => {
    await setMetadata(store, key, { channel: 'web', tags: ['a'], 'Zoë \u0000': 1 })
    await setMetadata(store, otherSession)
    await store.commit(newChange('a', { key: otherScope, append: [newMessage('one')] }))
    const listed = async () =>
      (await store.list({ limit: 9 })).map((item) => ('metadata' in item ? item.metadata : '-'))
    expectEqual(await listed(), [{ channel: 'web', tags: ['a'], 'Zoë \u0000': 1 }, '-', '-'])
    await setMetadata(store, key, 'text')
    await setMetadata(store, otherSession, null)
    expectEqual(await listed(), ['text', null, '-'])
    await store.commit(newChange('b', { drop: [metadataId] }))
    await store.erase(otherSession, { entries: [metadataId] })
    expectEqual(await listed(), ['-', '-', '-'])
  },
  'list › with a metadata filter › compares top-level fields by value and type': async (store) => {
    await setMetadata(store, key, { channel: 'web', count: 1, open: true, none: null, nested: { channel: 'web' } })
    await setMetadata(store, otherSession, { channel: 'Web', count: '1', open: 1, nested: null })
    await setMetadata(store, otherScope, ['web'])
    await store.commit(newChange('a', { key: parseKey('zeta:bob'), append: [newMessage('channel web')] }))
    const found = async (metadata: NonNullable<SessionFilter['metadata']>) =>
      formatKeys(await store.list({ metadata, limit: 9 }))
    expectEqual([await found({ channel: 'web' }), await found({ channel: 'Web' })], [['acme:ann'], ['acme:bob']])
    expectEqual([await found({ count: 1 }), await found({ count: '1' })], [['acme:ann'], ['acme:bob']])
    expectEqual([await found({ open: true }), await found({ open: 1 })], [['acme:ann'], ['acme:bob']])
    expectEqual([await found({ none: null }), await found({ nested: null })], [['acme:ann'], ['acme:bob']])
    expectEqual(
      [await found({ channel: 'web', count: 1 }), await found({ channel: 'web', count: 2 })],
      [['acme:ann'], []],
    )
    expectEqual(
      [await found({ 0: 'web' }), await found({ toString: 'x' }), await found({})],
      [[], [], ['acme:ann', 'acme:bob']],
    )
  },
  'list › with a metadata filter and paging › skips no session and repeats none': async (store) => {
    const name = (at: number) => `acme:s${String(at).padStart(3, '0')}`
    for (let at = 0; at < 30; at++)
      await setMetadata(store, parseKey(name(at)), { channel: at % 3 === 0 ? 'web' : 'mail' })
    const expected = Array.from({ length: 10 }, (_, at) => name(3 * at))
    const paged: string[] = []
    for (let after = ''; ; ) {
      const page = formatKeys(await store.list({ scope: 'acme', metadata: { channel: 'web' }, after, limit: 4 }))
      paged.push(...page)
      if (page.length < 4) break
      after = page.at(-1) as string
    }
    expectEqual(paged, expected)
    expectEqual(await store.list({ scope: 'zeta', metadata: { channel: 'web' }, limit: 4 }), [])
    expectEqual(await store.list({ metadata: { channel: 'web' }, expiredBy: 5_000, limit: 4 }), [])
  },
}
