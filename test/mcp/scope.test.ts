import { describe, expect, it } from 'vitest'
import { visitorOf, workspaceFor } from '../../src/mcp/scope.ts'
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

describe('the workspace of a call', () => {
  verifies('H-04', 'is the one it names, else the one of the command, else default', () => {
    expect(workspaceFor(visitorOf({ workspace: 'mine' }), 'other')).toBe('other')
    expect(workspaceFor(visitorOf({ workspace: 'mine' }), undefined)).toBe('mine')
    expect(workspaceFor(visitorOf({ only: ['mine', 'ours'] }), undefined)).toBe('mine')
    expect(workspaceFor(visitorOf({ only: ['mine', 'ours'], workspace: 'ours' }), undefined)).toBe('ours')
    expect(workspaceFor(visitorOf({}), undefined)).toBe('default')
  })

  verifies('H-09', 'is not found if it is not one of those that are open to the client', () => {
    expect(() => workspaceFor(visitorOf({ only: ['mine'] }), 'other')).toThrow(
      'Workspace other was not found. Leave out workspace, or name one that is open to you.',
    )
  })

  it('must be one of those that are open', () =>
    expect(() => visitorOf({ workspace: 'other', only: ['mine', 'ours'] })).toThrow(
      'workspace is other, which is none of those in only (mine, ours).',
    ))

  it('has no session in it, and nothing that could lead elsewhere', () => {
    expect(() => workspaceFor(visitorOf({}), 'a:b')).toThrow(
      'workspace is "a:b"; it must be a name such as my-project, without a colon.',
    )
    for (const name of ['', '..', 'a/b', '__proto__', 'p\u0430ypal'])
      expect(() => workspaceFor(visitorOf({}), name)).toThrow(/^The scope of key /)
  })
})

describe('who asks over HTTP', () => {
  const usual = visitorOf({})

  verifies('H-09', 'may use the scopes of their key, under its name', () => {
    expect(visitorFor(credential('acme'), usual)).toEqual({ name: 'ann', home: 'acme', only: ['acme'] })
    expect(visitorFor(credential('acme', 'globex'), usual)).toEqual({
      name: 'ann',
      home: 'acme',
      only: ['acme', 'globex'],
    })
    expect(visitorFor(credential('acme', 'globex'), visitorOf({ workspace: 'globex' }))).toEqual({
      name: 'ann',
      home: 'globex',
      only: ['acme', 'globex'],
    })
    expect(visitorFor(credential('*'), usual)).toEqual({ name: 'ann', home: 'default', only: undefined })
  })

  it('finds no other workspaces than those the configuration opens, whatever the key says', () => {
    const some = visitorOf({ only: ['acme', 'home'] })
    expect(visitorFor(undefined, some)).toEqual({ home: 'acme', only: ['acme', 'home'] })
    expect(visitorFor(credential('*'), some)).toEqual({ name: 'ann', home: 'acme', only: ['acme', 'home'] })
    expect(visitorFor(credential('home', 'globex'), some)).toEqual({ name: 'ann', home: 'home', only: ['home'] })
    expect(() => workspaceFor(visitorFor(credential('globex'), some), undefined)).toThrow(
      'Workspace acme was not found.',
    )
  })

  it('may use everything where no keys are asked for', () =>
    expect(visitorFor(undefined, usual)).toEqual({ home: 'default' }))
})
