import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { useInspector } from './useInspector.ts'

const inspector = useInspector(async (server) => {
  const sessions = [
    ['acme:ann', { channel: 'web', plan: 'pro' }],
    ['acme:bob', { channel: 'mail', plan: 'pro' }],
    ['acme:cid', { channel: 'web', level: 3 }],
  ] as const
  for (const [key, metadata] of sessions) {
    await server.post('/api/sessions', { key, metadata })
    await server.ask(key, `My name is ${key.slice(5)}.`)
  }
})

const open = (route = '#/sessions') => inspector.open(route, 'Sessions')
const listedKeys = () => inspector.page.locator('tbody td.session-key').allTextContents()
const choose = (key: string, action: string) => inspector.page.getByLabel(`Actions for ${key}`).selectOption(action)
const messageCount = async (key: string): Promise<number> => {
  const response = await fetch(`${inspector.server.url}/api/sessions/${key}`)
  return response.ok ? ((await response.json()) as { messages: number }).messages : response.status
}

describe('sessions in the inspector', () => {
  verifies('S-05', 'metadata filter › with fields › lists the sessions that have all of them', async () => {
    const { page } = inspector
    await open()
    const filter = page.getByLabel('Metadata')
    const cases = [
      ['channel=web', ['acme:ann', 'acme:cid']],
      ['channel=web, plan=pro', ['acme:ann']],
      ['level=3', ['acme:cid']],
      ['channel', ['acme:ann', 'acme:bob', 'acme:cid']],
    ] as const
    for (const [text, keys] of cases) {
      await filter.fill(text)
      await expect.poll(() => listedKeys(), { message: text }).toEqual(keys)
    }
    await filter.fill('channel=fax')
    await page.getByText('No session matches.').waitFor()
    await filter.fill('')
    await page.getByRole('link', { name: 'plan=pro' }).first().click()
    await expect.poll(() => listedKeys()).toEqual(['acme:ann', 'acme:bob'])
    expect(page.url()).toContain('metadata=plan%3Dpro')
    const row = page.getByRole('row', { name: /acme:ann/ })
    expect(await row.locator('td.number').allTextContents()).toEqual([
      '2',
      expect.stringMatching(/^\d\d$/),
      ...anyTimes,
    ])
  })

  it('transfer › to a taken key, then to a free one › says why it failed, then moves the session', async () => {
    const { server, page } = inspector
    await server.ask('acme:mover', 'I move.')
    await open()
    await choose('acme:mover', 'transfer')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('New key').fill('acme:ann')
    await dialog.getByRole('button', { name: 'Transfer' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'acme:ann exists already' }).waitFor()
    await dialog.getByLabel('New key').fill('acme:moved')
    await dialog.getByRole('button', { name: 'Transfer' }).click()
    await page.getByRole('link', { name: 'acme:moved' }).waitFor()
    await expect.poll(listedKeys).not.toContain('acme:mover')
    expect(await messageCount('acme:moved')).toBe(2)
  })

  it('export, end and import › of a session › bring it back as it was', async () => {
    const { server, page } = inspector
    await server.ask('acme:carried', 'My cat is called Miso.')
    await open()
    await choose('acme:carried', 'export')
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    const bundle = readFileSync(await (await download).path())
    expect(bundle.toString()).toContain('My cat is called Miso.')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await choose('acme:carried', 'end')
    await page.getByText('Deletes 2 messages').waitFor()
    await page.getByRole('button', { name: 'End session' }).click()
    await expect.poll(() => listedKeys()).not.toContain('acme:carried')
    expect(await messageCount('acme:carried')).toBe(404)
    await page.getByRole('button', { name: 'Import…' }).click()
    const dialog = page.getByRole('dialog')
    const choosePart = (buffer: Buffer) =>
      dialog.getByLabel('Bundle').setInputFiles({ name: 'bundle.jsonl', mimeType: 'application/jsonl', buffer })
    await dialog.getByLabel('Into tenant').fill('acme')
    // A live update must not reset what was written.
    await server.ask('acme:meanwhile', 'Hello')
    await page.locator('td.session-key', { hasText: 'acme:meanwhile' }).waitFor()
    expect(await dialog.getByLabel('Into tenant').inputValue()).toBe('acme')
    await choosePart(Buffer.from('this is no bundle'))
    await dialog.getByRole('button', { name: 'Import' }).click()
    await dialog.getByRole('alert').waitFor()
    await choosePart(bundle)
    await dialog.getByRole('button', { name: 'Import' }).click()
    await page.getByRole('link', { name: 'acme:carried' }).waitFor()
    expect(await messageCount('acme:carried')).toBe(2)
  })

  it('more sessions than a page has › next, previous and a page by its address › lead through all of them', async () => {
    const { server, page } = inspector
    const names = Array.from({ length: 60 }, (_, index) => `many:s${String(index).padStart(2, '0')}`)
    for (const key of names) await server.post('/api/sessions', { key })
    await open('#/sessions?scope=many')
    await expect.poll(listedKeys).toEqual(names.slice(0, 50))
    await page.getByRole('button', { name: 'Next' }).click()
    await expect.poll(listedKeys).toEqual(names.slice(50))
    expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Previous' }).click()
    await expect.poll(listedKeys).toEqual(names.slice(0, 50))
    await open('#/sessions?scope=many&after=many%3As39')
    await expect.poll(listedKeys).toEqual(names.slice(40))
    await page.getByRole('button', { name: 'Previous' }).click()
    await expect.poll(listedKeys).toEqual(names.slice(0, 50))
  })

  it('a session that expires › counts down every second, and warns during the last minutes', async () => {
    const { server, page } = inspector
    await server.post('/api/sessions', { key: 'soon:one', idle: 300_000 })
    await open('#/sessions?scope=soon')
    const left = page.getByRole('row', { name: /soon:one/ }).locator('time.warning')
    const first = await left.textContent()
    expect(first).toMatch(/^in 4 min \d+ s$/)
    await expect.poll(() => left.textContent()).not.toBe(first)
    expect(await left.textContent()).toMatch(/^in 4 min \d+ s$/)
  })

  it('session without expiry › on a phone › says so in words that belong together', async () => {
    const { page } = inspector
    await open()
    const cell = page
      .getByRole('row', { name: /acme:ann/ })
      .locator('td.number')
      .last()
    await cell.waitFor()
    const shownIn = async () => [
      await cell.evaluate((element) => getComputedStyle(element, '::before').content),
      await cell.getByText('never', { exact: true }).isVisible(),
    ]
    expect(await shownIn()).toEqual(['none', true])
    await page.setViewportSize({ width: 390, height: 800 })
    expect(await shownIn()).toEqual(['"Never expires "', false])
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  it('new session and metrics › with a wrong key and with a right one › say why, or open it', async () => {
    const { page } = inspector
    await open()
    await choose('acme:ann', 'metrics')
    await page.getByRole('dialog').getByText('Tokens sent').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'New session…' }).click()
    const dialog = page.getByRole('dialog')
    for (const [key, problem] of [
      ['acme:', 'acme'],
      ['no key at all', 'no key at all'],
      ['acme:ann', 'already exists'],
    ] as const) {
      await dialog.getByLabel('Key').fill(key)
      await dialog.getByRole('button', { name: 'Create' }).click()
      await dialog.getByRole('alert').filter({ hasText: problem }).waitFor()
    }
    await dialog.getByLabel('Key').fill('acme:new')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { level: 1, name: 'Chat' }).waitFor()
    expect(await messageCount('acme:new')).toBe(0)
  })
})

const anyTimes = [expect.any(String), 'never']
