import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { verifies } from '../requirements/verifies.ts'
import { closeBrowser, type InspectedServer, openTab, openView, startInspected } from './harness.ts'

/** A chain of sixteen people, each of whom knows the next, and a place of the first. */
const people = Array.from({ length: 16 }, (_, index) => `P${index}`)

let server: InspectedServer
beforeAll(async () => {
  server = await startInspected()
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
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await closeBrowser()
})

const open = (page: Page, route: string) => openView(page, `${server.url}/${route}`, 'Memory')
type Known = { readonly key: string; readonly value: unknown; readonly pending?: true }
const listKnowledge = async (): Promise<readonly Known[]> =>
  ((await (await fetch(`${server.url}/api/scopes/acme/knowledge`)).json()) as { items: readonly Known[] }).items

describe('memory in the inspector', () => {
  verifies('S-05', 'pending knowledge › approved, edited and rejected › is known, changed and gone', async () => {
    for (const key of ['warranty', 'delivery', 'rumour'])
      await server.memories.scopes.remember('acme', { category: 'domain', key, value: `Old ${key}`, by: 'assistant' })
    await using tab = await openTab()
    await open(tab.page, '#/memory/acme?tab=knowledge')
    await tab.page.getByRole('heading', { name: 'Waiting for approval' }).waitFor()
    await tab.page.getByRole('button', { name: 'Approve warranty' }).click()
    await tab.page.getByRole('button', { name: 'Delete warranty' }).waitFor()
    await tab.page.getByRole('button', { name: 'Edit delivery' }).click()
    const dialog = tab.page.getByRole('dialog')
    await dialog.getByLabel('Value').fill('On Saturdays')
    await dialog.getByLabel('Name').fill('parcels')
    await dialog.getByRole('button', { name: 'Save and approve' }).click()
    await tab.page.getByRole('button', { name: 'Delete parcels' }).waitFor()
    await tab.page.getByRole('button', { name: 'Reject rumour' }).click()
    await expect.poll(() => tab.page.getByRole('heading', { name: 'Waiting for approval' }).count()).toBe(0)
    expect((await listKnowledge()).map(({ key, value, pending }) => [key, value, pending])).toEqual([
      ['warranty', 'Old warranty', undefined],
      ['parcels', 'On Saturdays', undefined],
    ])
    expect(tab.problems).toEqual([])
  })

  it('knowledge of a person › added without a value, then with one › is stored for that person only', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/memory/acme?tab=knowledge&person=bob')
    await tab.page.getByText('Nothing is known about bob yet.').waitFor()
    await tab.page.getByRole('button', { name: 'Add knowledge…' }).click()
    const dialog = tab.page.getByRole('dialog')
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
    await tab.page.getByRole('row', { name: /colour green/ }).waitFor()
    expect((await listKnowledge()).some(({ key }) => key === 'colour')).toBe(false)
  })

  it('a fact that changed twice › shows a time line, newest first, with the period of each value', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/memory/acme%3Aann')
    const values = tab.page.getByRole('list', { name: 'History of theme' }).getByRole('listitem')
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
      await using tab = await openTab()
      const { page } = tab
      await open(page, '#/memory/acme?tab=graph&node=P0')
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
      expect(tab.problems).toEqual([])
    },
  )

  it('graph › a name is searched in the list › leads to the entity with its properties', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/memory/acme?tab=graph')
    await tab.page.getByLabel('Find an entity').fill('nobody')
    await tab.page.getByText('No entity has this name or type.').waitFor()
    await tab.page.getByLabel('Find an entity').fill('place')
    await tab.page.getByRole('list', { name: 'Entities' }).getByRole('button', { name: /Graz/ }).click()
    await tab.page.getByText('Austria').waitFor()
    expect(tab.page.url()).toContain('node=Graz')
  })

  it('memory › of a subject that is no key › says so', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/memory/acme?tab=knowledge')
    await tab.page.getByLabel('Tenant or session').fill('no key at all')
    await tab.page.getByRole('button', { name: 'Show' }).click()
    await tab.page.getByRole('alert').filter({ hasText: 'no key at all' }).waitFor()
  })
})
