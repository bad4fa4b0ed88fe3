import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { useInspector } from './useInspector.ts'

const dayMs = 86_400_000
const filler = 'We spoke about the weather for a while. '.repeat(30)

const inspector = useInspector(async () => undefined)
const openForget = (route: string) => inspector.open(route, 'Forget')
const readMessages = async (key: string): Promise<string> =>
  (await fetch(`${inspector.server.url}/api/sessions/${key}/messages`)).text()

/** Asks what depends on the target, and returns the counts that are shown. */
async function preview(): Promise<Readonly<Record<string, string>>> {
  const { page } = inspector
  await page.getByRole('button', { name: 'See what depends on it' }).click()
  await page.getByRole('heading', { name: 'This would be deleted' }).waitFor()
  const figures = await page
    .locator('.stat')
    .evaluateAll((stats) =>
      stats.map((stat) => [stat.querySelector('dt')?.textContent ?? '', stat.querySelector('dd')?.textContent ?? '']),
    )
  return Object.fromEntries(figures)
}

async function deleteForGood(): Promise<string> {
  const { page } = inspector
  await page.getByRole('button', { name: 'Delete all of this for good' }).click()
  await page.getByRole('heading', { name: 'Deleted' }).waitFor()
  return (await page.locator('[role=status].stack').textContent()) ?? ''
}

describe('forget in the inspector', () => {
  verifies('S-05', 'a message › shows its text and what depends on it, then the receipt', async () => {
    const { server, page } = inspector
    for (const text of ['The walrus sleeps in the cellar.', 'My rent is $915 a month.'])
      await server.ask('acme:message', text)
    await openForget('#/forget/acme%3Amessage?target=message&message=m1')
    expect(await preview()).toMatchObject({ Messages: '1' })
    expect(await page.locator('blockquote').textContent()).toBe('The walrus sleeps in the cellar.')
    expect(await readMessages('acme:message')).toContain('walrus')
    expect(await deleteForGood()).toMatch(/acme:message.*deleted.*m1/)
    const left = await readMessages('acme:message')
    expect([left.includes('walrus sleeps'), left.includes('$915')]).toEqual([false, true])
  })

  it('a message with a fact and a summary › lists both in words', async () => {
    const { server, page } = inspector
    await server.ask('acme:tea', 'Please remember: my favourite tea is Earl Grey.')
    await server.post('/api/sessions/acme:tea/record', { conversation_summary: 'They spoke about tea.' })
    const facts = async () => (await fetch(`${server.url}/api/sessions/acme:tea/facts`)).text()
    await expect.poll(facts).toContain('Earl Grey')
    await openForget('#/forget/acme%3Atea?target=message&message=m1')
    expect(await preview()).toMatchObject({ Messages: '1', Facts: expect.stringMatching(/^[1-9]/) })
    const texts = await page.locator('.dependants li').allTextContents()
    expect(texts).toContainEqual(expect.stringMatching(/^fact: .*Earl Grey/))
    await openForget('#/forget/acme%3Atea?target=session')
    expect(await preview()).toMatchObject({ Sessions: '1', Summaries: '1' })
    await page.locator('.dependants li', { hasText: 'summary: They spoke about tea.' }).waitFor()
  })

  it('a session › is cancelled, then confirmed › stays, then is gone', async () => {
    const { server, page } = inspector
    await server.ask('acme:whole', 'The heron waits by the pond.')
    await openForget('#/forget/acme%3Awhole')
    expect(await preview()).toMatchObject({ Sessions: '1', Messages: '2' })
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByRole('button', { name: 'Delete all of this for good' }).count()).toBe(0)
    expect(await readMessages('acme:whole')).toContain('heron')
    await preview()
    expect(await deleteForGood()).toMatch(/acme:whole.*2 entries deleted/)
    expect((await fetch(`${server.url}/api/sessions/acme:whole`)).status).toBe(404)
  })

  it('a text › in several sessions and in knowledge › names them all, and deletes nothing else', async () => {
    const { server } = inspector
    await server.ask('acme:first', 'The otter likes rivers.')
    await server.ask('acme:second', 'An otter eats fish.')
    await server.ask('acme:second', 'My rent is $915 a month.')
    await server.post('/api/scopes/acme/knowledge', { category: 'domain', key: 'animal', value: 'otter' })
    await openForget('#/forget/acme?target=text&text=otter')
    expect(await preview()).toMatchObject({ Messages: '2', Knowledge: '1' })
    expect(await deleteForGood()).toMatch(/acme:first.*acme:second/)
    const left = (await readMessages('acme:first')) + (await readMessages('acme:second'))
    expect([/otter/.test(left), left.includes('$915')]).toEqual([false, true])
  })

  it('wrong input › a missing, an unknown and an invalid target › is told in words and deletes nothing', async () => {
    const { page } = inspector
    await openForget('#/forget?target=session')
    await page.getByRole('button', { name: 'See what depends on it' }).click()
    expect(await page.getByLabel('Session').evaluate((input: HTMLInputElement) => input.validity.valueMissing)).toBe(
      true,
    )
    await page.getByLabel('Session').fill('no key at all')
    await page.getByRole('button', { name: 'See what depends on it' }).click()
    await page.getByRole('alert').filter({ hasText: 'no key at all' }).waitFor()
    await page.getByLabel('Session').fill('acme:nobody')
    await page.getByRole('button', { name: 'See what depends on it' }).click()
    await page.getByText('Nothing to delete: nothing matches.').waitFor()
  })
})

describe('search in the inspector', () => {
  verifies('S-05', 'a long message › marks the passage, and its link marks it in the transcript', async () => {
    const { server, page } = inspector
    await server.ask('acme:long', `${filler}The badger digs at night. ${filler}`)
    await inspector.open(`#/search/acme?q=badger`, 'Search')
    const result = page.locator('.result', { hasText: 'acme:long m1' })
    await result.locator('mark', { hasText: 'badger' }).waitFor()
    const passage = (await result.locator('.passage').allTextContents()).join('')
    expect(passage).toContain('The badger digs')
    expect(passage.length).toBeLessThan(filler.length)
    await result.getByRole('link').click()
    await expect.poll(() => page.locator('.message.highlighted mark').textContent()).toContain('The badger digs')
  })

  it('filters › by kind, session and date › restrict the results, and wrong ones are told', async () => {
    const { server, page } = inspector
    await server.ask('acme:today', 'The lynx hunts alone.')
    await server.ask('acme:other', 'A lynx has long ears.')
    await server.post('/api/scopes/acme/knowledge', { category: 'domain', key: 'lynx', value: 'lynx' })
    await inspector.open(`#/search/acme?q=lynx`, 'Search')
    const keys = () => page.locator('.result header a').allTextContents()
    await expect.poll(keys).toEqual(expect.arrayContaining(['acme:today m1', 'acme:other m1', 'acme']))
    await page.getByLabel('Kind').selectOption('knowledge')
    await expect.poll(keys).toEqual(['acme'])
    await page.getByLabel('Kind').selectOption('message')
    await page.getByLabel('Session').fill('today')
    await expect.poll(keys).toEqual(['acme:today m1', 'acme:today m2'])
    const day = (offset: number): string => new Date(Date.now() + offset * dayMs).toISOString().slice(0, 10)
    await page.getByLabel('To').fill(day(-1))
    await page.getByText('Nothing was found.').waitFor()
    await page.getByLabel('To').fill(day(1))
    await page.getByLabel('From').fill(day(-1))
    await expect.poll(keys).toEqual(['acme:today m1', 'acme:today m2'])
    await page.getByLabel('Session').fill('no:session')
    await page.getByRole('alert').waitFor()
  })
})
