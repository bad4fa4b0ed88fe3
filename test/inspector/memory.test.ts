import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { verifies } from '../requirements/verifies.ts'
import { useInspector } from './useInspector.ts'

/** A chain of sixteen people, each of whom knows the next, and a place of the first. */
const people = Array.from({ length: 16 }, (_, index) => `P${index}`)

const inspector = useInspector(async (server) => {
  await server.ask('acme:ann', 'My cat is called Miso.')
  for (const theme of ['dark', 'light', 'sepia'])
    await server.post('/api/sessions/acme:ann/record', { important_data: { user_preferences: { theme } } })
  const graph = await openGraph(`sqlite:${server.folder}/memory.db`)
  const entities = [...people.map((id) => ({ type: 'person', id, properties: {} }))]
  await graph.write('acme', {
    entities: [...entities, { type: 'place', id: 'Graz', properties: { country: 'Austria' } }],
    relationships: [
      ...people.slice(1).map((to, index) => ({ from: people[index] as string, type: 'knows', to })),
      { from: 'P0', type: 'lives_in', to: 'Graz' },
    ],
  })
  await graph.close()
})

const open = (route: string) => inspector.open(route, 'Memory')
type Known = { readonly key: string; readonly value: unknown; readonly pending?: true }
const listKnowledge = async (): Promise<readonly Known[]> =>
  ((await (await fetch(`${inspector.server.url}/api/scopes/acme/knowledge`)).json()) as { items: readonly Known[] })
    .items

describe('memory in the inspector', () => {
  verifies('S-05', 'pending knowledge › approved, edited and rejected › is known, changed and gone', async () => {
    const { server, page } = inspector
    for (const key of ['warranty', 'delivery', 'rumour'])
      await server.memories.scopes.remember('acme', { category: 'domain', key, value: `Old ${key}`, by: 'assistant' })
    await open('#/memory/acme?tab=knowledge')
    await page.getByRole('heading', { name: 'Waiting for approval' }).waitFor()
    await page.getByRole('button', { name: 'Approve warranty' }).click()
    await page.getByRole('button', { name: 'Delete warranty' }).waitFor()
    await page.getByRole('button', { name: 'Edit delivery' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Value').fill('On Saturdays')
    await dialog.getByLabel('Name').fill('parcels')
    await dialog.getByRole('button', { name: 'Save and approve' }).click()
    await page.getByRole('button', { name: 'Delete parcels' }).waitFor()
    await page.getByRole('button', { name: 'Reject rumour' }).click()
    await expect.poll(() => page.getByRole('heading', { name: 'Waiting for approval' }).count()).toBe(0)
    expect((await listKnowledge()).map(({ key, value, pending }) => [key, value, pending])).toEqual([
      ['warranty', 'Old warranty', undefined],
      ['parcels', 'On Saturdays', undefined],
    ])
  })

  it('knowledge of a person › added without a value, then with one › is stored for that person only', async () => {
    const { page } = inspector
    await open('#/memory/acme?tab=knowledge&person=bob')
    await page.getByText('Nothing is known about bob yet.').waitFor()
    await page.getByRole('button', { name: 'Add knowledge…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('colour')
    await dialog.getByRole('button', { name: 'Save' }).click()
    expect(await dialog.getByLabel('Value').evaluate((input: HTMLInputElement) => input.validity.valueMissing)).toBe(
      true,
    )
    await dialog.getByLabel('Value').fill('   ')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Value').fill('green')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('row', { name: /colour green/ }).waitFor()
    expect((await listKnowledge()).some(({ key }) => key === 'colour')).toBe(false)
  })

  it('a fact that changed twice › shows a time line, newest first, with the period of each value', async () => {
    const { page } = inspector
    await open('#/memory/acme%3Aann')
    const values = page.getByRole('list', { name: 'History of theme' }).getByRole('listitem')
    await expect.poll(() => values.count()).toBe(3)
    expect(await values.locator('.message-text').allTextContents()).toEqual(['sepia', 'light', 'dark'])
    expect(await values.locator('.period').allTextContents()).toEqual([
      expect.stringMatching(/ – now$/),
      expect.stringMatching(/^\d+ \w+ – \d+ \w+$/),
      expect.stringMatching(/^\d+ \w+ – \d+ \w+$/),
    ])
  })

  verifies(
    'S-05',
    'graph › walked by pointer and keyboard › grows, keeps what was opened, and is shareable',
    async () => {
      const { page } = inspector
      await open('#/memory/acme?tab=graph&node=P0')
      const nodes = page.locator('[data-node]')
      const shown = () => nodes.evaluateAll((all) => all.map((node) => node.getAttribute('data-node')))
      expect(await shown()).toEqual(['P0', 'P1', 'Graz'])
      const before = await page.locator('[data-node=Graz]').getAttribute('aria-label')
      expect(before).toBe('Graz, place')
      expect(await page.locator('[data-node=P1]').getAttribute('aria-label')).toBe('P1, person, 1 more neighbour')
      await page.locator('[data-node=P1]').click()
      await expect.poll(shown).toEqual(['P0', 'P1', 'Graz', 'P2'])
      for (let step = 2; step < 14; step++) {
        await page.locator(`[data-node=P${step}]`).focus()
        await page.keyboard.press('Enter')
        await expect.poll(() => nodes.count()).toBe(step + 3)
      }
      expect(new Set(await shown())).toEqual(new Set(['Graz', ...people.slice(0, 15)]))
      await page.locator('[data-node=P13]').focus()
      for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) await page.keyboard.press(key)
      expect(await page.evaluate(() => document.activeElement?.hasAttribute('data-node'))).toBe(true)
      await page.reload()
      await nodes.first().waitFor()
      await expect.poll(() => nodes.count()).toBe(16)
      const details = page.getByRole('region', { name: 'Entity', exact: true })
      expect(await details.getByRole('button').allTextContents()).toEqual(['← knowsP12', '→ knowsP14'])
      await page.getByRole('button', { name: 'Start again from P13' }).click()
      await expect.poll(shown).toEqual(['P13', 'P12', 'P14'])
    },
  )

  it('graph › a name is searched in the list › leads to the entity with its properties', async () => {
    const { page } = inspector
    await open('#/memory/acme?tab=graph')
    await page.getByLabel('Find an entity').fill('nobody')
    await page.getByText('No entity has this name or type.').waitFor()
    await page.getByLabel('Find an entity').fill('place')
    await page.getByRole('list', { name: 'Entities' }).getByRole('button', { name: /Graz/ }).click()
    await page.getByText('Austria').waitFor()
    expect(page.url()).toContain('node=Graz')
  })

  verifies(['S-05', 'X-09'], 'a fact › clicked › shows its message with the cited words marked', async () => {
    const { server, page } = inspector
    await server.ask('acme:tea', `${'It rains. '.repeat(20)}Please remember: my favourite tea is Earl Grey. Bye.`)
    const facts = async () => (await fetch(`${server.url}/api/sessions/acme:tea/facts`)).text()
    await expect.poll(facts).toContain('Earl Grey')
    await open('#/memory/acme%3Atea')
    await page.locator('.fact', { hasText: 'favorite tea' }).getByRole('link', { name: 'm1' }).click()
    const marked = page.locator('.message.highlighted mark')
    await expect.poll(() => marked.textContent()).toBe('my favourite tea is Earl Grey')
    await inspector.open('#/search/acme?q=favourite+tea&kind=fact', 'Search')
    await page.locator('.result', { hasText: 'Earl Grey' }).first().getByRole('link', { name: 'm1' }).click()
    await expect.poll(() => marked.textContent()).toBe('my favourite tea is Earl Grey')
  })

  it('summaries › written by upkeep › are shown by tier, with the messages whose details they leave out', async () => {
    const { server, page } = inspector
    const summaries = async (): Promise<{ items: { tier: string; lossyRanges?: number[][] }[] }> =>
      (await fetch(`${server.url}/api/sessions/acme:long/summaries`)).json()
    // More numbers than a summary can hold.
    const orders = (turn: number): string =>
      Array.from({ length: 60 }, (_, index) => `Order ${turn * 7_919 + index * 101} costs $${turn * 31 + index}.`).join(
        ' ',
      )
    for (let turn = 1; turn <= 12; turn++) await server.ask('acme:long', orders(turn))
    await expect.poll(async () => (await summaries()).items.length).toBeGreaterThan(0)
    await open('#/memory/acme%3Along?tab=summaries')
    await page.getByRole('heading', { name: 'Running summary' }).waitFor()
    const compare = async (): Promise<readonly [hasLosses: boolean, areShown: boolean]> => {
      const lossy = (await summaries()).items.flatMap(({ lossyRanges = [] }) => lossyRanges)
      return [lossy.length > 0, (await page.locator('.result .hint a').count()) === lossy.length]
    }
    await expect.poll(compare).toEqual([true, true])
  })

  it('a secret › in a message › is shown as a placeholder, and nowhere in the page as it was', async () => {
    const { server, page } = inspector
    const secret = 'sk-proj-4f9aK2mQ7xLw0ZbT8vRn3yUe'
    await server.ask('acme:secret', `My API key is ${secret}.`)
    await inspector.open('#/conversation/acme%3Asecret', 'acme:secret')
    await expect.poll(() => page.locator('.message .secret').first().textContent()).toMatch(/^⟨secret:\d+⟩$/)
    await page.getByText('The exact text that a model would get now, with placeholders for secrets.').waitFor()
    expect(await page.content()).not.toContain(secret)
  })

  it('files › uploaded, damaged and deleted › show the progress, the reason and the end', async () => {
    const { page } = inspector
    await open('#/memory/acme?tab=files')
    await page.getByText('This tenant has no files.').waitFor()
    const upload = (name: string, text: string) =>
      page
        .getByLabel('File', { exact: true })
        .setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })
    const held = Promise.withResolvers<void>()
    await page.route('**/files?wait=false', async (route) => {
      await held.promise
      await route.continue()
    })
    await upload('prices.txt', 'A lamp costs 12 euros.')
    await page.getByRole('progressbar', { name: 'Upload of prices.txt' }).waitFor()
    held.resolve()
    await page.getByRole('row', { name: /prices\.txt ready 22 B/ }).waitFor()
    expect(await page.getByRole('progressbar', { name: 'Upload of prices.txt' }).count()).toBe(0)
    await page.unroute('**/files?wait=false')
    await upload('broken.pdf', '%PDF-1.7 and nothing else')
    await page.getByRole('row', { name: /broken\.pdf failed .*Save it again/ }).waitFor()
    for (const name of ['prices.txt', 'broken.pdf']) await page.getByRole('button', { name: `Delete ${name}` }).click()
    await page.getByText('This tenant has no files.').waitFor()
  })

  it('memory › of a subject that is no key › says so', async () => {
    const { page } = inspector
    await open('#/memory/acme?tab=knowledge')
    await page.getByLabel('Tenant or session').fill('no key at all')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('alert').filter({ hasText: 'no key at all' }).waitFor()
  })
})
