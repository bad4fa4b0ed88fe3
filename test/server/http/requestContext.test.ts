import { ServerResponse } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { Credential, Rights } from '../../../src/server/auth/credential.ts'
import { HttpError } from '../../../src/server/http/httpError.ts'
import {
  checkAdmin,
  checkScope,
  type RequestContext,
  readNumber,
  requireOwnKey,
  sendJson,
} from '../../../src/server/http/requestContext.ts'
import { verifies } from '../../requirements/verifies.ts'

/** A request with a credential for these scopes; without scopes, one to a server that requires no keys. */
const contextOf = (scopes?: readonly string[], rights: Rights = 'use'): RequestContext => {
  const credential: Credential | undefined = scopes && { id: '7fK2mQ9x', name: '', scopes, rights, createdAt: 0 }
  return { credential } as RequestContext
}

const statusOf = (check: () => unknown): number => {
  try {
    check()
    return 200
  } catch (error) {
    return error instanceof HttpError ? error.status : 500
  }
}

describe('a request', () => {
  verifies('T-11', 'for a scope that its key does not name › is not found', () => {
    const statuses = (scopes?: readonly string[]) =>
      ['acme', 'other', 'acm', 'acmes'].map((scope) => statusOf(() => checkScope(contextOf(scopes), scope)))
    expect(statuses(['acme'])).toEqual([200, 404, 404, 404])
    expect(statuses(['acme', 'other'])).toEqual([200, 200, 404, 404])
    expect(statuses([])).toEqual([404, 404, 404, 404])
    expect(statuses(['*'])).toEqual([200, 200, 200, 200])
    expect(statuses()).toEqual([200, 200, 200, 200])
    const own = parseKey('acme:ann')
    expect(requireOwnKey(contextOf(['acme']), own)).toBe(own)
    expect(statusOf(() => requireOwnKey(contextOf(['acme']), parseKey('other:acme')))).toBe(404)
  })

  verifies('T-11', 'for operators › is found with an admin key, or on a server that requires no keys', () => {
    expect(statusOf(() => checkAdmin(contextOf(['*'], 'admin')))).toBe(200)
    expect(statusOf(() => checkAdmin(contextOf(['*'], 'use')))).toBe(404)
    expect(statusOf(() => checkAdmin(contextOf()))).toBe(200)
  })

  it('with a number in its query › reads it up to the maximum, and refuses other text', () => {
    const read = (text: string): number => readNumber(new URLSearchParams(text), 'limit', 20, 100)
    expect(['', 'limit=1', 'limit=007', 'limit=100', 'limit=101', 'limit=999999999'].map(read)).toEqual([
      20, 1, 7, 100, 100, 100,
    ])
    for (const text of ['0', '-1', '1.5', '1e3', '', '1x', 'x1', '1000000000', '+1'])
      expect(() => read(`limit=${encodeURIComponent(text)}`)).toThrow(
        `limit is ${JSON.stringify(text)}; it must be a whole number from 1 to 100.`,
      )
    expect(() => read('limit=x')).toThrow(expect.objectContaining({ status: 400, code: 'bad_option', param: 'limit' }))
    expect(() => read(`limit=${'x'.repeat(41)}`)).toThrow('limit is "…";')
  })

  it('sendJson › sends the value with its length in bytes', () => {
    const response = new ServerResponse({ method: 'GET' } as never)
    const writeHead = vi.spyOn(response, 'writeHead')
    const end = vi.spyOn(response, 'end')
    sendJson(response, 201, { name: 'ä' }, { 'x-extra': '1' })
    expect(writeHead).toHaveBeenCalledWith(201, {
      'x-extra': '1',
      'content-type': 'application/json',
      'content-length': 13,
    })
    expect(String(end.mock.calls[0]?.[0])).toBe('{"name":"ä"}')
  })
})
