import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { closeBrowser, type InspectedServer, openTab, openView, startInspected } from './harness.ts'

const payload = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"\'><svg onload=window.hacked=1>'

let server: InspectedServer
beforeAll(async () => {
  server = await startInspected()
  for (const text of [
    'My cat is called Miso.',
    'My rent is $915 a month.',
    payload,
    'My sister Clara moved to Graz.',
    'What is my cat called?',
  ])
    await server.ask('acme:ann', text)
  await server.post('/api/scopes/acme/knowledge', { category: 'domain', key: payload, value: payload })
  await server.post('/api/sessions', { key: 'acme:described', person: 'ann', metadata: { note: payload } })
  await fetch(`${server.url}/api/scopes/acme/files`, {
    method: 'POST',
    headers: { 'x-filename': encodeURIComponent(`${payload.replaceAll(/[/\\]/g, '')}.md`) },
    body: payload,
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await closeBrowser()
})

/** Address and heading of every view. */
const views = [
  ['#/sessions', 'Sessions'],
  ['#/conversation/acme%3Aann', 'acme:ann'],
  ['#/chat/acme%3Aann', 'Chat'],
  ['#/memory/acme%3Aann', 'Memory'],
  ['#/memory/acme%3Aann?tab=summaries', 'Memory'],
  ['#/memory/acme?tab=knowledge', 'Memory'],
  ['#/memory/acme?tab=files', 'Memory'],
  ['#/memory/acme?tab=graph', 'Memory'],
  ['#/search/acme?q=cat', 'Search'],
  ['#/forget/acme%3Aann', 'Forget'],
  ['#/operations', 'Operations'],
] as const

const open = (page: Page, route: string, heading: string) => openView(page, `${server.url}/${route}`, heading)

describe('inspector', () => {
  verifies(
    'S-05',
    'every view › opened by its address › shows stored markup as text, within the content policy',
    async () => {
      await using tab = await openTab()
      for (const [route, heading] of views) {
        await open(tab.page, route, heading)
        const state = await tab.page.evaluate(() => ({
          hacked: 'hacked' in window,
          images: document.querySelectorAll('img, iframe, object').length,
          scripts: [...document.scripts].every(({ src }) => src.startsWith(`${location.origin}/assets/`)),
        }))
        expect([route, state]).toEqual([route, { hacked: false, images: 0, scripts: true }])
      }
      expect(tab.problems).toEqual([])
      await open(tab.page, '#/conversation/acme%3Aann', 'acme:ann')
      await tab.page.getByText(payload).first().waitFor()
    },
  )

  it('first load › is at most 120 kB of gzip and loads nothing from elsewhere', async () => {
    await using tab = await openTab()
    const loaded: { readonly url: string; readonly bytes: number }[] = []
    tab.page.on('response', async (response) => {
      if (/\/api\//.test(response.url())) return
      const { responseBodySize } = await response.request().sizes()
      loaded.push({ url: response.url(), bytes: responseBodySize })
    })
    await open(tab.page, '#/sessions', 'Sessions')
    await expect.poll(() => loaded.length).toBeGreaterThanOrEqual(4)
    expect(loaded.filter(({ url }) => !url.startsWith(server.url))).toEqual([])
    expect(loaded.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(120_000)
    const response = await fetch(`${server.url}/`, { headers: { accept: 'text/html', 'accept-encoding': 'identity' } })
    const asset = /src="(\/assets\/[^"]+)"/.exec(await response.text())?.[1]
    const zipped = await fetch(server.url + asset, { headers: { 'accept-encoding': 'gzip' } })
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
  })

  it('conversation › a segment is selected by keyboard › shows its reason and highlights its message', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/conversation/acme%3Aann', 'acme:ann')
    await tab.page.getByRole('slider').fill('3')
    const bar = tab.page.getByRole('listbox')
    await bar.press('End')
    await expect.poll(() => tab.page.locator('.line-details').textContent()).toMatch(/\d tokens.*from this session/)
    await expect.poll(() => tab.page.locator('.message.highlighted').count()).toBeGreaterThan(0)
    expect(tab.page.url()).toMatch(/turn=rc_/)
    expect(tab.problems).toEqual([])
  })

  verifies(
    'S-05',
    'conversation › compared with another turn and another profile › shows the differences',
    async () => {
      await using tab = await openTab()
      await open(tab.page, '#/conversation/acme%3Aann', 'acme:ann')
      await tab.page.getByRole('slider').fill('4')
      const compare = tab.page.getByLabel('Compare with')
      const label = await compare.locator('option', { hasText: /^Turn 2,/ }).textContent()
      await compare.selectOption({ label: label ?? '' })
      await tab.page.getByRole('heading', { name: 'Turn 2 and Turn 5' }).waitFor()
      const figures = (name: string) => tab.page.getByRole('row', { name: new RegExp(`^${name}`) }).locator('.number')
      const [was, is, difference] = await figures('Tokens').allTextContents()
      expect(difference).toBe(`+${Number(is) - Number(was)}`)
      const changes = tab.page.locator('.change-list li')
      expect(await changes.allTextContents()).toEqual(['m4–m9not there → shown whole'])
      await changes.last().getByRole('button').click()
      await compare.selectOption('profile:summary')
      await tab.page.getByRole('heading', { name: 'thread and summary' }).waitFor()
      expect(await figures('Budget').allTextContents()).toEqual(['400', '400', '0'])
      expect(tab.problems).toEqual([])
    },
  )

  it('conversation › an edited history › keeps the branch that was cut off', async () => {
    const first = { role: 'user', content: 'Plan a weekend in Porto.' }
    const send = (...messages: readonly object[]) =>
      fetch(`${server.url}/v1/acme:edited/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-threadkeep-history': 'full' },
        body: JSON.stringify({ model: 'any', messages }),
      })
    const { choices } = (await (await send(first)).json()) as { choices: [{ message: object }] }
    const reply = choices[0].message
    await send(first, reply, { role: 'user', content: 'We arrive on Friday.' })
    await send(first, reply, { role: 'user', content: 'We arrive on Saturday.' })
    await using tab = await openTab()
    await open(tab.page, '#/conversation/acme%3Aedited', 'acme:edited')
    const transcript = tab.page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText('We arrive on Saturday.').waitFor()
    expect(await transcript.getByText('We arrive on Friday.').count()).toBe(0)
    await tab.page.getByLabel('Branch').selectOption({ index: 1 })
    await transcript.getByText('We arrive on Friday.').waitFor()
    expect(tab.problems).toEqual([])
  })

  it('chat › with the offline model › streams the reply and shows its receipt', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/chat/acme%3Achat', 'Chat')
    for (const text of ['My dog is called Rex.', 'What is my dog called?']) {
      await tab.page.getByRole('textbox', { name: 'Message' }).fill(text)
      await tab.page.keyboard.press('Enter')
      await tab.page.getByRole('button', { name: 'Send' }).waitFor()
    }
    await tab.page.locator('.reply', { hasText: 'Rex' }).waitFor()
    await tab.page.getByRole('link', { name: 'See what the model saw' }).click()
    await tab.page.getByRole('heading', { level: 1, name: 'acme:chat' }).waitFor()
    expect(tab.problems).toEqual([])
  })

  it('sessions › a client writes › the list changes without a reload', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/sessions', 'Sessions')
    await tab.page.getByText('Live', { exact: true }).waitFor()
    await server.ask('acme:live', 'Hello')
    await tab.page.getByRole('link', { name: 'acme:live' }).waitFor()
    await tab.page.getByLabel('Search by key').fill('LIVE')
    await expect.poll(() => tab.page.locator('tbody tr').count()).toBe(1)
    await tab.page.getByLabel('Actions for acme:live').selectOption('end')
    await tab.page.getByRole('button', { name: 'End session' }).click()
    await tab.page.getByText('No session matches.').waitFor()
  })

  it('memory › a file is uploaded and a source is followed › shows the file and the marked message', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/memory/acme?tab=files', 'Memory')
    await tab.page
      .locator('input[type=file]')
      .setInputFiles({ name: 'prices.txt', mimeType: 'text/plain', buffer: Buffer.from('A lamp costs 12 euros.') })
    await tab.page.getByRole('row', { name: /prices\.txt.*ready/ }).waitFor()
    await open(tab.page, '#/conversation/acme%3Aann?message=m1&span=10-20', 'acme:ann')
    await expect.poll(() => tab.page.locator('mark').first().textContent()).toBe('called Mis')
  })

  it('keyboard › Tab and Enter alone › lead from the navigation to a conversation', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/sessions', 'Sessions')
    const focusedText = () => tab.page.evaluate(() => document.activeElement?.textContent?.trim() ?? '')
    for (let press = 0; press < 30 && (await focusedText()) !== 'acme:ann'; press++)
      await tab.page.keyboard.press('Tab')
    expect(await focusedText()).toBe('acme:ann')
    await tab.page.keyboard.press('Enter')
    await tab.page.getByRole('heading', { level: 1, name: 'acme:ann' }).waitFor()
  })

  it('server › goes away and comes back › the page says so and recovers', async () => {
    await using tab = await openTab()
    await open(tab.page, '#/sessions', 'Sessions')
    await tab.page.getByText('Live', { exact: true }).waitFor()
    await server.stop()
    await tab.page.getByText('Server unreachable, trying again').waitFor()
    expect(await tab.page.getByRole('link', { name: 'acme:ann' }).isVisible()).toBe(true)
    await server.start()
    await tab.page.getByText('Live', { exact: true }).waitFor()
    await server.ask('acme:later', 'Hello')
    await tab.page.getByRole('link', { name: 'acme:later' }).waitFor()
  })
})

describe('inspector with API keys', () => {
  it('a tenant signs in › sees its own sessions only, and nothing of others by address', async () => {
    await using own = await startInspected()
    await own.ask('acme:ann', 'My cat is called Miso.')
    await own.ask('globex:bob', 'My dog is called Rex.')
    const key = await own.createKey(['acme'])
    await using tab = await openTab()
    await tab.page.goto(`${own.url}/`)
    await tab.page.getByLabel('API key').fill('tk_wrong')
    await tab.page.getByRole('button', { name: 'Sign in' }).click()
    await tab.page.getByRole('alert').waitFor()
    await tab.page.getByLabel('API key').fill(key)
    await tab.page.getByRole('button', { name: 'Sign in' }).click()
    await tab.page.getByRole('link', { name: 'acme:ann' }).waitFor()
    await own.post('/v1/acme:ann/chat/completions', { model: 'any', messages: [{ role: 'user', content: 'Hi' }] }, key)
    expect(await tab.page.getByText('globex').count()).toBe(0)
    for (const route of ['#/conversation/globex%3Abob', '#/memory/globex?tab=knowledge', '#/search/globex?q=dog']) {
      await tab.page.goto(`${own.url}/${route}`)
      await tab.page.getByText('Not found, or not visible with this key.').first().waitFor()
      expect(await tab.page.getByText('Rex').count()).toBe(0)
    }
  })
})
