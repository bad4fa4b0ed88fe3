import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { closeBrowser, type InspectedServer, openTab, openView, startInspected } from './harness.ts'

let server: InspectedServer
beforeAll(async () => {
  server = await startInspected()
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
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await closeBrowser()
})

const open = (page: Page, route = '#/sessions') => openView(page, `${server.url}/${route}`, 'Sessions')
const listedKeys = (page: Page) => page.locator('tbody td.session-key').allTextContents()
const choose = (page: Page, key: string, action: string) => page.getByLabel(`Actions for ${key}`).selectOption(action)
const messageCount = async (key: string): Promise<number> => {
  const response = await fetch(`${server.url}/api/sessions/${key}`)
  return response.ok ? ((await response.json()) as { messages: number }).messages : response.status
}

describe('sessions in the inspector', () => {
  verifies('S-05', 'metadata filter › with fields › lists the sessions that have all of them', async () => {
    await using tab = await openTab()
    await open(tab.page)
    const filter = tab.page.getByLabel('Metadata')
    const cases = [
      ['channel=web', ['acme:ann', 'acme:cid']],
      ['channel=web, plan=pro', ['acme:ann']],
      ['level=3', ['acme:cid']],
      ['channel', ['acme:ann', 'acme:bob', 'acme:cid']],
    ] as const
    for (const [text, keys] of cases) {
      await filter.fill(text)
      await expect.poll(() => listedKeys(tab.page), { message: text }).toEqual(keys)
    }
    await filter.fill('channel=fax')
    await tab.page.getByText('No session matches.').waitFor()
    await filter.fill('')
    await tab.page.getByRole('link', { name: 'plan=pro' }).first().click()
    await expect.poll(() => listedKeys(tab.page)).toEqual(['acme:ann', 'acme:bob'])
    expect(tab.page.url()).toContain('metadata=plan%3Dpro')
    const row = tab.page.getByRole('row', { name: /acme:ann/ })
    expect(await row.locator('td.number').allTextContents()).toEqual([
      '2',
      expect.stringMatching(/^\d\d$/),
      ...anyTimes,
    ])
    expect(tab.problems).toEqual([])
  })

  it('transfer › to a taken key, then to a free one › says why it failed, then moves the session', async () => {
    await server.ask('acme:mover', 'I move.')
    await using tab = await openTab()
    await open(tab.page)
    await choose(tab.page, 'acme:mover', 'transfer')
    const dialog = tab.page.getByRole('dialog')
    await dialog.getByLabel('New key').fill('acme:ann')
    await dialog.getByRole('button', { name: 'Transfer' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'acme:ann exists already' }).waitFor()
    await dialog.getByLabel('New key').fill('acme:moved')
    await dialog.getByRole('button', { name: 'Transfer' }).click()
    await tab.page.getByRole('link', { name: 'acme:moved' }).waitFor()
    expect(await listedKeys(tab.page)).not.toContain('acme:mover')
    expect(await messageCount('acme:moved')).toBe(2)
  })

  it('export, end and import › of a session › bring it back as it was', async () => {
    await server.ask('acme:carried', 'My cat is called Miso.')
    await using tab = await openTab()
    await open(tab.page)
    await choose(tab.page, 'acme:carried', 'export')
    const download = tab.page.waitForEvent('download')
    await tab.page.getByRole('button', { name: 'Download' }).click()
    const bundle = readFileSync(await (await download).path())
    expect(bundle.toString()).toContain('My cat is called Miso.')
    await tab.page.getByRole('dialog').waitFor({ state: 'detached' })
    await choose(tab.page, 'acme:carried', 'end')
    await tab.page.getByText('Deletes 2 messages').waitFor()
    await tab.page.getByRole('button', { name: 'End session' }).click()
    await expect.poll(() => listedKeys(tab.page)).not.toContain('acme:carried')
    expect(await messageCount('acme:carried')).toBe(404)
    await tab.page.getByRole('button', { name: 'Import…' }).click()
    const dialog = tab.page.getByRole('dialog')
    const choosePart = (buffer: Buffer) =>
      dialog.getByLabel('Bundle').setInputFiles({ name: 'bundle.jsonl', mimeType: 'application/jsonl', buffer })
    await dialog.getByLabel('Into tenant').fill('acme')
    // A live update must not reset what was written.
    await server.ask('acme:meanwhile', 'Hello')
    await tab.page.locator('td.session-key', { hasText: 'acme:meanwhile' }).waitFor()
    expect(await dialog.getByLabel('Into tenant').inputValue()).toBe('acme')
    await choosePart(Buffer.from('this is no bundle'))
    await dialog.getByRole('button', { name: 'Import' }).click()
    await dialog.getByRole('alert').waitFor()
    await choosePart(bundle)
    await dialog.getByRole('button', { name: 'Import' }).click()
    await tab.page.getByRole('link', { name: 'acme:carried' }).waitFor()
    expect(await messageCount('acme:carried')).toBe(2)
    expect(tab.problems).toEqual([])
  })

  it('new session and metrics › with a wrong key and with a right one › say why, or open it', async () => {
    await using tab = await openTab()
    await open(tab.page)
    await choose(tab.page, 'acme:ann', 'metrics')
    await tab.page.getByRole('dialog').getByText('Tokens sent').waitFor()
    await tab.page.getByRole('button', { name: 'Close' }).click()
    await tab.page.getByRole('button', { name: 'New session…' }).click()
    const dialog = tab.page.getByRole('dialog')
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
    await tab.page.getByRole('heading', { level: 1, name: 'Chat' }).waitFor()
    expect(await messageCount('acme:new')).toBe(0)
  })
})

const anyTimes = [expect.any(String), 'never']
