import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from './demo/browser.ts'
import { startDemo } from './demo/demoServer.ts'
import { buildInspector } from './inspector.ts'

/** Takes a picture of every view in `screenshots/`, light and dark, wide and narrow, and the picture of the README. */
const root = fileURLToPath(new URL('../', import.meta.url))
const folder = `${root}screenshots`

const { values: flags } = parseArgs({
  options: { view: { type: 'string' }, width: { type: 'string' }, theme: { type: 'string' } },
})

type Shot = { readonly name: string; readonly route: string; readonly prepare?: (page: Page) => Promise<void> }

const shots: readonly Shot[] = [
  { name: 'sessions', route: '#/sessions' },
  { name: 'conversation', route: '#/conversation/acme%3Amara' },
  { name: 'turn', route: '#/conversation/acme%3Amara', prepare: selectTurn },
  { name: 'profiles', route: '#/conversation/acme%3Amara?compare=profile:summary' },
  { name: 'turns', route: '#/conversation/acme%3Amara', prepare: compareTurns },
  { name: 'branch', route: '#/conversation/acme%3Aedited', prepare: selectBranch },
  { name: 'chat', route: '#/chat/demo%3Ame', prepare: chat },
  { name: 'facts', route: '#/memory/acme%3Amara' },
  { name: 'summaries', route: '#/memory/acme%3Aticket-4711?tab=summaries' },
  { name: 'knowledge', route: '#/memory/acme?tab=knowledge' },
  { name: 'files', route: '#/memory/acme?tab=files' },
  { name: 'graph', route: '#/memory/acme?tab=graph&node=Acme&open=Mara%2CJonas' },
  { name: 'search', route: '#/search/acme?q=rash+celery+dinner' },
  { name: 'forget', route: '#/forget/acme%3Amara?target=text&text=Clara', prepare: previewForget },
  { name: 'operations', route: '#/operations' },
  { name: 'upkeep', route: '#/operations', prepare: showUpkeep },
  { name: 'transfer', route: '#/sessions', prepare: openTransfer },
]

async function selectTurn(page: Page): Promise<void> {
  await page.getByRole('slider').fill('120')
  for (let press = 0; press < 6; press++) await page.getByRole('listbox').press('ArrowRight')
}

async function compareTurns(page: Page): Promise<void> {
  await page.getByRole('slider').fill('120')
  await page.getByLabel('Compare with').selectOption({ index: 60 })
  await page.locator('.comparison').waitFor()
}

async function selectBranch(page: Page): Promise<void> {
  await page.getByLabel('Branch').selectOption({ index: 1 })
}

async function showUpkeep(page: Page): Promise<void> {
  await page.getByRole('heading', { name: 'Server' }).evaluate((heading) => heading.scrollIntoView())
}

async function openTransfer(page: Page): Promise<void> {
  await page.getByLabel('Actions for acme:mara').selectOption('transfer')
}

async function chat(page: Page): Promise<void> {
  for (const question of ['My cat is called Miso.', 'What is my cat called?']) {
    await page.getByRole('textbox', { name: 'Message' }).fill(question)
    await page.getByRole('textbox', { name: 'Message' }).press('Enter')
    await page.getByRole('button', { name: 'Send' }).waitFor()
    await page.getByRole('link', { name: 'See what the model saw' }).waitFor()
  }
}

async function previewForget(page: Page): Promise<void> {
  await page.getByRole('textbox', { name: 'Text' }).fill('Clara')
  await page.getByRole('button', { name: 'See what depends on it' }).click()
  await page.getByRole('button', { name: 'Delete all of this for good' }).waitFor()
}

const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } } as const

async function take(
  browser: Browser,
  url: string,
  size: keyof typeof sizes,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  const context = await browser.newContext({ viewport: sizes[size], colorScheme })
  for (const { name, route, prepare } of shots) {
    if (flags.view !== undefined && flags.view !== name) continue
    const page = await context.newPage()
    await page.goto(`${url}/${route}`)
    await page.waitForLoadState('load')
    await page.waitForFunction(
      () => document.querySelector('h1') !== null && document.querySelector('.loading') === null,
    )
    await prepare?.(page)
    await page.waitForFunction(() => document.querySelector('.loading, .loading-message') === null)
    await page.screenshot({ path: `${folder}/${name}-${size}-${colorScheme}.png` })
    if (name === 'turn' && size === 'wide' && colorScheme === 'light')
      await page.screenshot({ path: `${root}docs/images/inspector.png` })
    await page.close()
  }
  await context.close()
}

await buildInspector()
mkdirSync(folder, { recursive: true })
mkdirSync(`${root}docs/images`, { recursive: true })
process.stderr.write('Generating conversations…\n')
await using demo = await startDemo()
const browser = await launchBrowser()
for (const size of ['wide', 'narrow'] as const)
  for (const scheme of ['light', 'dark'] as const) {
    if ((flags.width ?? size) !== size || (flags.theme ?? scheme) !== scheme) continue
    process.stderr.write(`${size}, ${scheme}\n`)
    await take(browser, demo.url, size, scheme)
  }
await browser.close()
