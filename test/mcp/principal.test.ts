import { describe, expect, it } from 'vitest'
import { resolveWorkspace, visitorOf } from '../../src/mcp/principal.ts'
import type { Credential } from '../../src/server/auth/credential.ts'
import { visitorFor } from '../../src/server/mcpEndpoint.ts'
import { verifies } from '../requirements/verifies.ts'

const credential = (...scopes: readonly string[]): Credential => ({
  id: 'abcd1234',
  name: 'ann',
  scopes,
  rights: 'use',
  createdAt: 0,
})

describe('workspace of a call', () => {
  verifies('H-04', 'is the requested one, else the default of the command, else default', () => {
    expect(resolveWorkspace(visitorOf({ workspace: 'mine' }), 'other')).toBe('other')
    expect(resolveWorkspace(visitorOf({ workspace: 'mine' }), undefined)).toBe('mine')
    expect(resolveWorkspace(visitorOf({ only: ['mine', 'ours'] }), undefined)).toBe('mine')
    expect(resolveWorkspace(visitorOf({ only: ['mine', 'ours'], workspace: 'ours' }), undefined)).toBe('ours')
    expect(resolveWorkspace(visitorOf({}), undefined)).toBe('default')
  })

  verifies('H-09', 'that is not allowed is not found', () => {
    expect(() => resolveWorkspace(visitorOf({ only: ['mine'] }), 'other')).toThrow(
      'Workspace other was not found. Leave out workspace, or name one you may use.',
    )
  })

  it('that is the default must be one of the allowed ones', () =>
    expect(() => visitorOf({ workspace: 'other', only: ['mine', 'ours'] })).toThrow(
      'workspace other is not in only (mine, ours). Add it to only, or use one of these.',
    ))

  it('with a session or an invalid name is rejected', () => {
    expect(() => resolveWorkspace(visitorOf({}), 'a:b')).toThrow(
      'workspace is "a:b"; it must be a name such as my-project, without a colon.',
    )
    for (const name of ['', '..', 'a/b', '__proto__', 'p\u0430ypal'])
      expect(() => resolveWorkspace(visitorOf({}), name)).toThrow(/^The scope of key /)
  })
})

describe('principal over HTTP', () => {
  const configured = visitorOf({})

  verifies('H-09', 'has the name and the scopes of its key', () => {
    expect(visitorFor(credential('acme'), configured)).toEqual({ name: 'ann', home: 'acme', only: ['acme'] })
    expect(visitorFor(credential('acme', 'globex'), configured)).toEqual({
      name: 'ann',
      home: 'acme',
      only: ['acme', 'globex'],
    })
    expect(visitorFor(credential('acme', 'globex'), visitorOf({ workspace: 'globex' }))).toEqual({
      name: 'ann',
      home: 'globex',
      only: ['acme', 'globex'],
    })
    expect(visitorFor(credential('*'), configured)).toEqual({ name: 'ann', home: 'default', only: undefined })
  })

  it('is restricted to the configured workspaces, even if its key has more scopes', () => {
    const restricted = visitorOf({ only: ['acme', 'home'] })
    expect(visitorFor(undefined, restricted)).toEqual({ home: 'acme', only: ['acme', 'home'] })
    expect(visitorFor(credential('*'), restricted)).toEqual({ name: 'ann', home: 'acme', only: ['acme', 'home'] })
    expect(visitorFor(credential('home', 'globex'), restricted)).toEqual({ name: 'ann', home: 'home', only: ['home'] })
    expect(() => resolveWorkspace(visitorFor(credential('globex'), restricted), undefined)).toThrow(
      'Workspace acme was not found.',
    )
  })

  it('without keys may use everything', () => expect(visitorFor(undefined, configured)).toEqual({ home: 'default' }))
})
