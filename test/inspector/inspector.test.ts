import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { verifies } from '../requirements/verifies.ts'
import { openTab, openView, startInspected } from './harness.ts'
import { useInspector } from './useInspector.ts'

const payload = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"\'><svg onload=window.hacked=1>'

const inspector = useInspector(async (server) => {
  for (const text of [
    'My cat is called Miso.',
    'My rent is $915 a month.',
    payload,
    'My sister Clara moved to Graz.',
    'What is my cat called?',
  ])
    await server.ask('acme:ann', text)
  await server.post('/api/scopes/acme/knowledge', { category: 'domain', key: payload, value: payload })
  await server.memories.scopes.remember('acme', {
    category: 'domain',
    key: `${payload}2`,
    value: payload,
    by: 'assistant',
  })
  await server.post('/api/sessions', { key: 'acme:described', person: payload, metadata: { [payload]: payload } })
  await server.post('/api/sessions/acme:ann/record', {
    important_data: { user_preferences: { [payload]: payload }, important_facts: [payload] },
    conversation_summary: payload,
  })
  const call = { id: payload, type: 'function', function: { name: 'run', arguments: JSON.stringify({ payload }) } }
  await server.post('/v1/acme:tools/chat/completions', {
    model: payload,
    messages: [
      { role: 'user', name: payload, content: 'Run it.' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: payload, content: payload },
    ],
  })
  const graph = await openGraph(`sqlite:${server.folder}/memory.db`)
  await graph.write('acme', {
    entities: [payload, 'Ann'].map((id) => ({ type: payload, id, properties: { [payload]: payload } })),
    relationships: [{ from: payload, type: payload, to: 'Ann' }],
  })
  await graph.close()
  await fetch(`${server.url}/api/scopes/acme/files`, {
    method: 'POST',
    headers: { 'x-filename': encodeURIComponent(`${payload.replaceAll(/[/\\]/g, '')}.md`) },
    body: payload,
  })
})

/** Address and heading of every view. */
const views = [
  ['#/sessions', 'Sessions'],
  ['#/conversation/acme%3Aann', 'acme:ann'],
  [`#/conversation/acme%3Aann?compare=profile:${encodeURIComponent(payload)}&pane=prompt`, 'acme:ann'],
  ['#/conversation/acme%3Atools', 'acme:tools'],
  [`#/conversation/${encodeURIComponent(payload)}`, payload],
  ['#/chat/acme%3Aann', 'Chat'],
  ['#/memory/acme%3Aann', 'Memory'],
  ['#/memory/acme%3Aann?tab=summaries', 'Memory'],
  ['#/memory/acme?tab=knowledge', 'Memory'],
  [`#/memory/acme?tab=knowledge&person=${encodeURIComponent(payload)}`, 'Memory'],
  ['#/memory/acme?tab=files', 'Memory'],
  ['#/memory/acme?tab=graph', 'Memory'],
  [`#/search/acme?q=${encodeURIComponent(payload)}`, 'Search'],
  [`#/forget/acme?target=text&text=${encodeURIComponent(payload)}`, 'Forget'],
  ['#/operations', 'Operations'],
] as const

const { open } = inspector

describe('inspector', () => {
  verifies(
    'S-05',
    'every view › opened by its address › shows stored markup as text, within the content policy',
    async () => {
      const { page } = inspector
      for (const [route, heading] of views) {
        await open(route, heading)
        const state = await page.evaluate(() => ({
          hacked: 'hacked' in window,
          images: document.querySelectorAll('img, iframe, object').length,
          scripts: [...document.scripts].every(({ src }) => src.startsWith(`${location.origin}/assets/`)),
        }))
        expect([route, state]).toEqual([route, { hacked: false, images: 0, scripts: true }])
      }
      await open('#/conversation/acme%3Aann', 'acme:ann')
      await page.getByText(payload).first().waitFor()
    },
  )

  it('an address that changes before the first paint › is followed', async () => {
    await using tab = await openTab()
    await tab.page.addInitScript(() => {
      const observer = new MutationObserver(() => {
        if (document.querySelector('.shell') === null) return
        observer.disconnect()
        window.location.hash = '#/operations'
      })
      observer.observe(document, { childList: true, subtree: true })
    })
    await openView(tab.page, inspector.server.url, 'Operations')
  })

  it('a view that is loaded after the reader has gone on › does not replace the current one', async () => {
    await using tab = await openTab()
    const held = Promise.withResolvers<string>()
    const released = Promise.withResolvers<void>()
    await tab.page.route(/\/assets\/operations-.*\.js$/, async (route) => {
      held.resolve(route.request().url())
      await released.promise
      await route.continue()
    })
    await tab.page.goto(`${inspector.server.url}/#/operations`)
    const script = await held.promise
    await openView(tab.page, `${inspector.server.url}/#/sessions`, 'Sessions')
    released.resolve()
    await tab.page.evaluate(async (url) => {
      await import(url)
      await new Promise(requestAnimationFrame)
      await new Promise(requestAnimationFrame)
    }, script)
    expect(await tab.page.getByRole('heading', { level: 1 }).allTextContents()).toEqual(['Sessions'])
  })

  it('first load › is at most 120 kB of gzip and loads nothing from elsewhere', async () => {
    const { server } = inspector
    await using tab = await openTab()
    const loaded: { readonly url: string; readonly bytes: number }[] = []
    tab.page.on('response', async (response) => {
      if (/\/api\//.test(response.url())) return
      const { responseBodySize } = await response.request().sizes()
      loaded.push({ url: response.url(), bytes: responseBodySize })
    })
    await openView(tab.page, `${server.url}/#/sessions`, 'Sessions')
    await expect.poll(() => loaded.length).toBeGreaterThanOrEqual(4)
    expect(loaded.filter(({ url }) => !url.startsWith(server.url))).toEqual([])
    expect(loaded.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(120_000)
    const response = await fetch(`${server.url}/`, { headers: { accept: 'text/html', 'accept-encoding': 'identity' } })
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'.*trusted-types 'none'/)
    const asset = /src="(\/assets\/[^"]+)"/.exec(await response.text())?.[1]
    const zipped = await fetch(server.url + asset, { headers: { 'accept-encoding': 'gzip' } })
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
  })

  it('conversation › a segment is selected by pointer and keyboard › shows its reason and highlights its message', async () => {
    const { page } = inspector
    await open('#/conversation/acme%3Aann', 'acme:ann')
    await page.getByRole('slider').fill('3')
    const bar = page.getByRole('listbox')
    await bar.getByRole('option', { name: /m1/ }).first().hover()
    await page.locator('.message.highlighted', { hasText: 'My cat is called Miso.' }).waitFor()
    await bar.press('End')
    await expect.poll(() => page.locator('.line-details').textContent()).toMatch(/\d tokens.*from this session/)
    await expect.poll(() => page.locator('.message.highlighted').count()).toBeGreaterThan(0)
    expect(page.url()).toMatch(/turn=rc_/)
  })

  verifies(
    'S-05',
    'conversation › compared with another turn and another profile › shows the differences',
    async () => {
      const { page } = inspector
      await open('#/conversation/acme%3Aann', 'acme:ann')
      await page.getByRole('slider').fill('4')
      const compare = page.getByLabel('Compare with')
      const label = await compare.locator('option', { hasText: /^Turn 2,/ }).textContent()
      await compare.selectOption({ label: label ?? '' })
      await page.getByRole('heading', { name: 'Turn 2 and Turn 5' }).waitFor()
      const figures = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) }).locator('.number')
      const [was, is, difference] = await figures('Tokens').allTextContents()
      expect(difference).toBe(`+${Number(is) - Number(was)}`)
      const changes = page.locator('.change-list li')
      expect(await changes.allTextContents()).toEqual(['m4–m9not there → shown whole'])
      await changes.last().getByRole('button').click()
      await compare.selectOption('profile:summary')
      await page.getByRole('heading', { name: 'thread and summary' }).waitFor()
      await using other = await openTab()
      await other.page.goto(page.url())
      await other.page.getByRole('heading', { name: 'thread and summary' }).waitFor()
      expect(await other.page.getByRole('slider').inputValue()).toBe('4')
      expect(await figures('Budget').allTextContents()).toEqual(['400', '400', '0'])
    },
  )

  it('conversation › an edited history › keeps the branch that was cut off', async () => {
    const { server, page } = inspector
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
    await open('#/conversation/acme%3Aedited', 'acme:edited')
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText('We arrive on Saturday.').waitFor()
    await expect
      .poll(() => page.locator('.cache-boundary').textContent())
      .toMatch(/^The cacheable prefix ends here, after \d+ /)
    expect(await page.locator('.cache-mark').count()).toBe(1)
    expect(await transcript.getByText('We arrive on Friday.').count()).toBe(0)
    await page.getByLabel('Branch').selectOption({ index: 1 })
    await transcript.getByText('We arrive on Friday.').waitFor()
  })

  it('chat › with the offline model › streams the reply and shows its receipt', async () => {
    const { page } = inspector
    await open('#/chat/acme%3Achat', 'Chat')
    for (const text of ['My dog is called Rex.', 'What is my dog called?']) {
      await page.getByRole('textbox', { name: 'Message' }).fill(text)
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Send' }).waitFor()
    }
    await page.locator('.reply', { hasText: 'Rex' }).waitFor()
    await page.getByRole('link', { name: 'See what the model saw' }).click()
    await page.getByRole('heading', { level: 1, name: 'acme:chat' }).waitFor()
  })

  it('sessions › a client writes › the list changes without a reload', async () => {
    const { server, page } = inspector
    await open('#/sessions', 'Sessions')
    await page.getByText('Live', { exact: true }).waitFor()
    await server.ask('acme:live', 'Hello')
    await page.getByRole('link', { name: 'acme:live' }).waitFor()
    await page.getByLabel('Search by key').fill('LIVE')
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await page.getByLabel('Actions for acme:live').selectOption('end')
    await page.getByRole('button', { name: 'End session' }).click()
    await page.getByText('No session matches.').waitFor()
  })

  it('a long conversation › opened, continued and entered at a message › shows few rows, and the right ones', async () => {
    const { server, page } = inspector
    const text = 'The parcel left Rotterdam on Monday. '
    const messages = Array.from({ length: 301 }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: `${index + 1}: ${text.repeat(1 + (index % 7))}`,
    }))
    const headers = { 'content-type': 'application/json', 'x-threadkeep-history': 'full' }
    const body = JSON.stringify({ model: 'any', messages })
    await fetch(`${server.url}/v1/acme:rows/chat/completions`, { method: 'POST', headers, body })
    const isShown = (id: string) =>
      page.getByRole('article', { name: new RegExp(`^${id},`) }).evaluate((row) => {
        const [list, own] = [row.closest('.virtual')?.getBoundingClientRect(), row.getBoundingClientRect()]
        return list !== undefined && own.top >= list.top - 1 && own.bottom <= list.bottom + 1
      })
    await open('#/conversation/acme%3Arows', 'acme:rows')
    await expect.poll(() => isShown('m302')).toBe(true)
    expect(await page.locator('.virtual-row').count()).toBeLessThan(40)
    await server.ask('acme:rows', 'One more question.')
    await expect.poll(() => isShown('m304')).toBe(true)
    await open('#/conversation/acme%3Arows?message=m20', 'acme:rows')
    await expect.poll(() => page.locator('.message.highlighted').textContent()).toContain('20: ')
    expect(await isShown('m20')).toBe(true)
  })

  it('keyboard › alone › leads to a conversation, creates a session, closes a dialog and sends a message', async () => {
    const { page } = inspector
    await open('#/sessions', 'Sessions')
    await page.reload()
    await page.getByRole('link', { name: 'acme:ann' }).waitFor()
    const press = (...keys: readonly string[]) =>
      keys.reduce((last, key) => last.then(() => page.keyboard.press(key)), Promise.resolve())
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '')
    const tabTo = async (text: string): Promise<void> => {
      for (let count = 0; count < 40 && (await focused()) !== text; count++) await press('Tab')
      expect(await focused()).toBe(text)
    }
    await tabTo('Skip to content')
    await press('Enter')
    await tabTo('acme:ann')
    await press('Enter')
    await page.getByRole('heading', { level: 1, name: 'acme:ann' }).waitFor()
    await tabTo('Sessions')
    await press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor()
    await tabTo('New session…')
    await press('Enter')
    await page.getByRole('dialog').waitFor()
    await press('Escape')
    expect([await page.getByRole('dialog').count(), await focused()]).toEqual([0, 'New session…'])
    await press('Enter')
    await page.getByRole('dialog').waitFor()
    await press('Control+A')
    await page.keyboard.type('acme:keys')
    await press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Chat' }).waitFor()
    for (
      let count = 0;
      count < 40 && !(await page.locator('#question').evaluate((box) => box === document.activeElement));
      count++
    )
      await press('Tab')
    await page.keyboard.type('My dog is called Rex.')
    await press('Enter')
    await page.getByRole('link', { name: 'See what the model saw' }).waitFor()
  })

  it('a dialog › that is closed and opened again at once › is shown', async () => {
    const { page } = inspector
    await open('#/sessions', 'Sessions')
    await page.getByRole('button', { name: 'New session…' }).click()
    await page.getByRole('dialog').waitFor()
    await page.evaluate(async () => {
      // As Escape does: a browser tells of the closed dialog in a later task, which may come after the next key.
      document.querySelector('dialog')?.requestClose()
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
      if (!(document.activeElement instanceof HTMLButtonElement)) throw new Error('The button has lost the focus.')
      document.activeElement.click()
    })
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)))
    await page.getByRole('dialog').getByLabel('Key').fill('acme:again')
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('New session…')
  })

  it('views without data › say so, and name the next step', async () => {
    const { server, page } = inspector
    await server.post('/api/sessions', { key: 'nobody:one' })
    const cases = [
      ['#/sessions?q=nothing-like-it', 'Sessions', 'No session matches.'],
      ['#/conversation/nobody%3Aone', 'nobody:one', 'This session has no messages yet.'],
      ['#/chat/nobody%3Anew', 'Chat', 'Start the session nobody:new'],
      ['#/memory', 'Memory', 'Choose a tenant or a session'],
      ['#/memory/nobody%3Aone', 'Memory', 'No facts yet.'],
      ['#/memory/nobody%3Aone?tab=summaries', 'Memory', 'No summaries yet.'],
      ['#/memory/nobody?tab=knowledge', 'Memory', 'Nothing is known about this tenant yet.'],
      ['#/memory/nobody?tab=files', 'Memory', 'This tenant has no files.'],
      ['#/memory/nobody?tab=graph', 'Memory', 'The graph of this tenant is empty.'],
      ['#/search/nobody', 'Search', 'Search the memory of a tenant'],
      ['#/search/nobody?q=cat', 'Search', 'Nothing was found.'],
      ['#/operations/nobody', 'Operations', 'No turns yet.'],
    ] as const
    for (const [route, heading, text] of cases) {
      await open(route, heading)
      await page.getByText(text).waitFor()
    }
    await open('#/memory', 'Memory')
    await page.getByRole('link', { name: 'acme', exact: true }).click()
    await page.getByRole('tab', { name: 'Knowledge' }).waitFor()
  })

  it('a slow and a failing answer › show that data is on its way, then the reason and a way to try again', async () => {
    const { page } = inspector
    const held = Promise.withResolvers<void>()
    await page.route('**/api/sessions?*', async (route) => {
      await held.promise
      await route.fulfill({ status: 500, json: { error: { message: 'The disk is full.' } } })
    })
    await page.goto(`${inspector.server.url}/#/sessions?q=acme`)
    await page.locator('.loading').waitFor()
    held.resolve()
    await page.getByRole('alert').filter({ hasText: 'The disk is full.' }).waitFor()
    await page.unroute('**/api/sessions?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('link', { name: 'acme:ann' }).waitFor()
  })

  it('server › goes away and comes back › the page says so and recovers', async () => {
    const { server, page } = inspector
    await open('#/sessions', 'Sessions')
    await page.reload()
    await page.getByRole('link', { name: 'acme:ann' }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await server.stop()
    await page.getByText('Server unreachable, trying again').waitFor()
    expect(await page.getByRole('link', { name: 'acme:ann' }).isVisible()).toBe(true)
    await server.start()
    await page.getByText('Live', { exact: true }).waitFor()
    await server.ask('acme:later', 'Hello')
    await page.getByRole('link', { name: 'acme:later' }).waitFor()
  })
})

describe('operations in the inspector', () => {
  it('turns › are shown as figures and charts, with the state of the server, upkeep and the optimizer', async () => {
    const { page } = inspector
    await open('#/operations/acme', 'Operations')
    const figure = (label: string) => page.locator('.stat', { hasText: label }).first().locator('dd')
    expect(Number((await figure('Turns').textContent())?.match(/^\d+/)?.[0])).toBeGreaterThan(5)
    for (const name of ['Turns per minute', 'Mean latency', 'Tokens per minute', 'Cost per minute'])
      expect(
        await page
          .getByRole('img', { name: new RegExp(`^${name}: `) })
          .locator('canvas')
          .count(),
      ).toBe(1)
    await page.getByText('Everything works.').waitFor()
    expect(await figure('Whole messages').textContent()).toMatch(/^\d+newest ones$/)
    expect(await figure('Target').textContent()).toMatch(/^\d+ %of the budget$/)
    await page.getByRole('heading', { name: 'Upkeep' }).waitFor()
  })

  it('an upstream that cannot be reached › is told in words, after views of an empty server', async () => {
    await using own = await startInspected({ upstreams: [{ name: 'broken', base: 'http://127.0.0.1:9/v1' }] })
    await using tab = await openTab()
    await openView(tab.page, `${own.url}/#/sessions`, 'Sessions')
    await tab.page.getByText('There are no sessions yet.').waitFor()
    await openView(tab.page, `${own.url}/#/chat/acme%3Aann`, 'Chat')
    await tab.page.getByRole('textbox', { name: 'Message' }).fill('Hello')
    await tab.page.keyboard.press('Enter')
    await tab.page.locator('.reply [role=alert]').waitFor()
    await openView(tab.page, `${own.url}/#/operations`, 'Operations')
    await tab.page.getByText(/^The server (works with restrictions|cannot answer requests):$/).waitFor()
    const upstream = tab.page.locator('.stat', { hasText: 'Upstream broken' }).locator('dd')
    expect(await upstream.textContent()).toMatch(/^(failing|down)$/)
    expect(await tab.page.locator('.faults li').first().textContent()).toContain('broken is')
    expect(tab.problems).toEqual([])
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
    await openView(tab.page, `${own.url}/#/operations`, 'Operations')
    await tab.page.getByRole('heading', { name: 'Optimizer' }).waitFor()
    expect(await tab.page.getByRole('heading', { name: 'Server' }).count()).toBe(0)
  })
})
