import { type Checks, change, content, fact, key, refused, said, same } from './stage.ts'

/** Forgetting, and what is refused afterwards. */
export const forgetting: Checks = {
  'a forgotten session is gone and late writers are refused': async (store) => {
    await store.commit(change('a', { append: [said('one')], put: [fact('f1', 'x')] }))
    same([...(await store.erase(key))].sort(), ['f1', 'm1'])
    same((await store.head(key, 10)).messages, 0)
    await refused('erased', store.commit(change('late', { append: [said('late')] })))
    await refused('erased', store.commit(change('a', { append: [said('one')] })))
    const { epoch } = await store.head(key, 0)
    await store.commit(change('new', { epoch, append: [said('new')] }))
    same((await store.head(key, 10)).recent.map(content), ['new'])
  },
  'a session is ended only while it is over': async (store) => {
    await store.commit(change('a', { append: [said('one')], expiresAt: 2_000 }))
    same(await store.erase(key, { expiredBy: 1_999 }), [])
    same([(await store.head(key, 0)).messages, (await store.head(key, 0)).epoch], [1, 0])
    same(await store.erase(key, { expiredBy: 2_000 }), ['m1'])
    same([(await store.head(key, 0)).messages, (await store.head(key, 0)).epoch], [0, 1])
    same(await store.erase(key, { expiredBy: 9_000 }), [])
    same((await store.head(key, 0)).epoch, 1)
  },
  'a forgotten message is gone from pages, head, search and repeated answers': async (store) => {
    await store.commit(change('a', { append: [said('keep this'), said('forget the walrus')] }))
    await store.search(key, { text: 'walrus', limit: 5 })
    same(await store.erase(key, { entries: ['m2', 'm9', 'm2'] }), ['m2'])
    const head = await store.head(key, 10)
    same([head.recent.map(content), head.asked?.content, head.gaps], [['keep this'], 'keep this', [[2, 2]]])
    same(await store.search(key, { text: 'walrus', limit: 5 }), [])
    same((await store.commit(change('a', { append: [said('keep this'), said('forget the walrus')] }))).map(content), [
      'keep this',
    ])
    await refused('conflict', store.commit(change('b', { base: 1, put: [fact('f1', 'walrus')] })))
  },
}
