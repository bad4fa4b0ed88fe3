import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { verifies } from '../requirements/verifies.ts'
import { closeBrowser, type InspectedServer, openTab, openView, startInspected } from './harness.ts'

let server: InspectedServer
beforeAll(async () => {
  server = await startInspected()
  for (const text of [
    'My rent is $915 a month.',
    'My API key is sk-proj-4f9aK2mQ7xLw0ZbT8vRn3yUe.',
    'What is my rent?',
  ])
    await server.ask('acme:ann', text)
  for (const theme of ['dark', 'light'])
    await server.post('/api/sessions/acme:ann/record', { important_data: { user_preferences: { theme } } })
  await server.post('/api/sessions/acme:ann/record', { conversation_summary: 'Ann pays $915 a month.' })
  await server.post('/api/scopes/acme/knowledge', { category: 'domain', key: 'hours', value: '9 to 5' })
  const claim = { category: 'domain', key: 'warranty', value: 'Two years', by: 'assistant' } as const
  await server.memories.scopes.remember('acme', claim)
  await fetch(`${server.url}/api/scopes/acme/files`, { method: 'POST', headers: { 'x-filename': 'a.md' }, body: 'Hi' })
  const graph = await openGraph(`sqlite:${server.folder}/memory.db`)
  await graph.write('acme', {
    entities: ['Ann', 'Bob'].map((id) => ({ type: 'person', id, properties: { city: 'Graz' } })),
    relationships: [{ from: 'Ann', type: 'knows', to: 'Bob' }],
  })
  await graph.close()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await closeBrowser()
})

type Opened = { readonly route: string; readonly heading: string; readonly prepare?: (page: Page) => Promise<void> }

const openDialog =
  (name: string) =>
  async (page: Page): Promise<void> => {
    await page.getByRole('button', { name }).click()
    await page.getByRole('dialog').waitFor()
  }

const views: readonly Opened[] = [
  { route: '#/sessions', heading: 'Sessions' },
  { route: '#/sessions?q=none', heading: 'Sessions', prepare: openDialog('Import…') },
  { route: '#/conversation/acme%3Aann?compare=profile:summary', heading: 'acme:ann' },
  { route: '#/chat/acme%3Aann', heading: 'Chat' },
  { route: '#/memory/acme%3Aann', heading: 'Memory' },
  { route: '#/memory/acme%3Aann?tab=summaries', heading: 'Memory' },
  { route: '#/memory/acme?tab=knowledge', heading: 'Memory' },
  { route: '#/memory/acme?tab=files', heading: 'Memory' },
  { route: '#/memory/acme?tab=graph', heading: 'Memory' },
  { route: '#/search/acme?q=rent', heading: 'Search' },
  {
    route: '#/forget/acme%3Aann',
    heading: 'Forget',
    prepare: async (page) => {
      await page.getByRole('button', { name: 'See what depends on it' }).click()
      await page.getByRole('button', { name: 'Delete all of this for good' }).waitFor()
    },
  },
  { route: '#/operations', heading: 'Operations' },
]

/** Rules that depend on colours and sizes. The others find the same in every theme. */
const visualRules = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'target-size']

async function findViolations(page: Page, rules: readonly string[] | undefined): Promise<readonly string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  return page.evaluate(async (only) => {
    const { violations } = await (window as unknown as { axe: typeof axe }).axe.run({
      resultTypes: ['violations'],
      ...(only !== undefined && { runOnly: { type: 'rule' as const, values: [...only] } }),
    })
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`)
  }, rules)
}

/** Themes and widths. One of each width is checked with all rules: a narrow page shows and hides other elements. */
const looks = [
  { scheme: 'light', width: 1280, rules: undefined },
  { scheme: 'dark', width: 1280, rules: visualRules },
  { scheme: 'dark', width: 390, rules: undefined },
  { scheme: 'light', width: 390, rules: visualRules },
] as const

describe('accessibility of the inspector', () => {
  verifies('S-05', 'every view › light and dark, wide and narrow › has no violations', async () => {
    await using tab = await openTab({ bypassesPolicy: true })
    const { page } = tab
    for (const { route, heading, prepare } of views) {
      await openView(page, `${server.url}/${route}`, heading)
      await prepare?.(page)
      for (const { scheme, width, rules } of looks) {
        await page.emulateMedia({ colorScheme: scheme })
        await page.setViewportSize({ width, height: 800 })
        expect([route, scheme, width, await findViolations(page, rules)]).toEqual([route, scheme, width, []])
        expect([route, width, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([
          route,
          width,
          width,
        ])
      }
      await page.keyboard.press('Escape')
    }
    expect(tab.problems).toEqual([])
  })
})
