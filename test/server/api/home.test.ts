import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { startServer } from '../start.ts'

const get = (url: string, accept: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${url}/`, { headers: { accept, ...headers } })

const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8'

describe('GET /', () => {
  it.each([
    ['*/*', 'text/plain'],
    ['', 'text/plain'],
    ['application/json', 'application/json'],
    [browserAccept, 'text/html'],
    ['text/html;q=0.5, application/json', 'application/json'],
    ['text/html;q=0', 'text/plain'],
    ['image/png', 'text/plain'],
    ['q=,;;,text/html;q=x', 'text/plain'],
  ])('with accept %s › is %s', async (accept, type) => {
    await using server = await startServer()
    const response = await get(server.url, accept)
    expect([response.status, response.headers.get('content-type')?.split(';')[0]]).toEqual([200, type])
    expect(await response.text()).toContain(`${server.url}/v1/demo:me`)
  })

  it('as text › has the status, commands that work and the links', async () => {
    await using server = await startServer()
    const text = await (await get(server.url, '*/*')).text()
    expect(text).toContain('Status: ok.')
    expect(text.split('\n').length).toBeLessThan(16)
    for (const path of ['/openapi.json', '/healthz', '/metrics']) {
      expect(text).toContain(path)
      expect((await fetch(`${server.url}${path}`)).status).toBe(200)
    }
    const bodies = [...text.matchAll(/-d '(.*)'/g)].map(([, body]) => body as string)
    const replies = []
    for (const body of bodies) replies.push(await (await server.postChat('demo:me', body)).json())
    expect(replies[1]).toMatchObject({ choices: [{ message: { content: expect.stringContaining('Miso') } }] })
  })

  it('as a page › without a built inspector › says in one sentence how to build it, and loads nothing', async () => {
    await using server = await startServer()
    const response = await get(server.url, browserAccept)
    const html = await response.text()
    expect(html).toContain('The inspector page is not built. Run <code>npm run inspector</code>')
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/)
    expect(html).not.toMatch(/<(?:style|script)|\s(?:href|src|action|style|on\w+)=/)
  })

  it('by HEAD › has the headers without a body, and other methods are refused', async () => {
    await using server = await startServer()
    const head = await fetch(`${server.url}/`, { method: 'HEAD', headers: { accept: 'text/html' } })
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
      200,
      'text/html; charset=utf-8',
      '',
    ])
    expect((await fetch(`${server.url}/`, { method: 'POST' })).status).toBe(405)
  })

  it('with API keys › needs none and reveals nothing that is stored', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadkeep-home-'))
    const credentials = new Credentials(join(folder, 'keys.json'), { fileExpected: false, onFault: () => undefined })
    await credentials.create({ scopes: ['secret-tenant'], name: 'shop', rights: 'admin' }, Date.now())
    await using server = await startServer({ credentials, upstream: 'http://10.1.2.3:9/v1' })
    await server.memory.append('secret-tenant:ann', [{ role: 'user', content: 'My cat is called Miso.' }])
    for (const accept of ['*/*', 'application/json', browserAccept]) {
      const response = await get(server.url, accept)
      const text = await response.text()
      expect(response.status).toBe(200)
      expect(text).not.toMatch(/secret-tenant|ann\b|10\.1\.2\.3|shop/)
    }
    expect(await (await get(server.url, '*/*')).text()).toContain("-H 'authorization: Bearer KEY'")
    expect((await fetch(`${server.url}/metrics`)).status).toBe(401)
    rmSync(folder, { recursive: true })
  })

  it('with a hostile host or scheme › writes neither into the page', async () => {
    await using server = await startServer({ allowedHosts: ['memory.example'] })
    const https = await get(server.url, 'text/html', { 'x-forwarded-proto': 'https' })
    expect(await https.text()).toContain(server.url.replace('http:', 'https:'))
    const odd = await get(server.url, 'text/html', { 'x-forwarded-proto': '"><script>' })
    expect(await odd.text()).not.toContain('"><script>')
  })
})
