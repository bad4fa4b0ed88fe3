import { describe, expect, it } from 'vitest'
import { createPrincipal, resolveWorkspace } from '../../src/mcp/principal.ts'
import type { McpHttpServer } from '../../src/mcp/transports/http.ts'
import type { Credential } from '../../src/server/auth/credential.ts'
import { createMcpEndpoint, principalFor } from '../../src/server/mcpEndpoint.ts'
import { verifies } from '../requirements/verifies.ts'

const credential = (...scopes: readonly string[]): Credential => ({
  id: 'abcd1234',
  name: 'ann',
  scopes,
  rights: 'use',
  createdAt: 0,
})

describe('workspace of a call', () => {
  it('that is refused › is an error about the option workspace', () => {
    const isOptionError = expect.objectContaining({ code: 'bad-option', param: 'workspace' })
    expect(() => createPrincipal({ workspace: 'other', only: ['mine'] })).toThrow(isOptionError)
    expect(() => resolveWorkspace(createPrincipal({ only: ['mine'] }), 'other')).toThrow(isOptionError)
    expect(() => resolveWorkspace(createPrincipal({}), 'a:b')).toThrow(isOptionError)
  })

  verifies('H-04', 'is the requested one, else the default of the command, else default', () => {
    expect(resolveWorkspace(createPrincipal({ workspace: 'mine' }), 'other')).toBe('other')
    expect(resolveWorkspace(createPrincipal({ workspace: 'mine' }), undefined)).toBe('mine')
    expect(resolveWorkspace(createPrincipal({ only: ['mine', 'ours'] }), undefined)).toBe('mine')
    expect(resolveWorkspace(createPrincipal({ only: ['mine', 'ours'], workspace: 'ours' }), undefined)).toBe('ours')
    expect(resolveWorkspace(createPrincipal({}), undefined)).toBe('default')
  })

  verifies('H-09', 'that is not allowed is not found', () => {
    expect(() => resolveWorkspace(createPrincipal({ only: ['mine'] }), 'other')).toThrow(
      'Workspace other was not found. Leave out workspace, or name one you may use.',
    )
  })

  it('that is the default must be one of the allowed ones', () =>
    expect(() => createPrincipal({ workspace: 'other', only: ['mine', 'ours'] })).toThrow(
      'workspace other is not in only (mine, ours). Add it to only, or use one of these.',
    ))

  it('with a session or an invalid name is rejected', () => {
    expect(() => resolveWorkspace(createPrincipal({}), 'a:b')).toThrow(
      'workspace is "a:b"; it must be a name such as my-project, without a colon.',
    )
    for (const name of ['', '..', 'a/b', '__proto__', 'p\u0430ypal'])
      expect(() => resolveWorkspace(createPrincipal({}), name)).toThrow(/^The scope of key /)
  })
})

describe('principal over HTTP', () => {
  const configured = createPrincipal({})

  verifies('H-09', 'has the name and the scopes of its key', () => {
    expect(principalFor(credential('acme'), configured)).toEqual({
      name: 'ann',
      defaultWorkspace: 'acme',
      allowedWorkspaces: ['acme'],
    })
    expect(principalFor(credential('acme', 'globex'), configured)).toEqual({
      name: 'ann',
      defaultWorkspace: 'acme',
      allowedWorkspaces: ['acme', 'globex'],
    })
    expect(principalFor(credential('acme', 'globex'), createPrincipal({ workspace: 'globex' }))).toEqual({
      name: 'ann',
      defaultWorkspace: 'globex',
      allowedWorkspaces: ['acme', 'globex'],
    })
    expect(principalFor(credential('*'), configured)).toEqual({
      name: 'ann',
      defaultWorkspace: 'default',
      allowedWorkspaces: undefined,
    })
  })

  it('is restricted to the configured workspaces, even if its key has more scopes', () => {
    const restricted = createPrincipal({ only: ['acme', 'home'] })
    expect(principalFor(undefined, restricted)).toEqual({
      defaultWorkspace: 'acme',
      allowedWorkspaces: ['acme', 'home'],
    })
    expect(principalFor(credential('*'), restricted)).toEqual({
      name: 'ann',
      defaultWorkspace: 'acme',
      allowedWorkspaces: ['acme', 'home'],
    })
    expect(principalFor(credential('home', 'globex'), restricted)).toEqual({
      name: 'ann',
      defaultWorkspace: 'home',
      allowedWorkspaces: ['home'],
    })
    expect(() => resolveWorkspace(principalFor(credential('globex'), restricted), undefined)).toThrow(
      'Workspace acme was not found.',
    )
  })

  it('without keys may use everything', () =>
    expect(principalFor(undefined, configured)).toEqual({ defaultWorkspace: 'default' }))
})

describe('createMcpEndpoint', () => {
  it('after close › opens nothing, so that no file of the store is created again', async () => {
    let opened = 0
    const open = async () => {
      opened++
      return { close: async () => undefined, drain: () => undefined } as McpHttpServer
    }
    const visitor = createPrincipal({ workspace: 'acme' })
    const used = createMcpEndpoint({ visitor, open })
    await used.endpoint()
    await used.endpoint()
    await used.close()
    const unused = createMcpEndpoint({ visitor, open })
    await unused.close()
    for (const { endpoint } of [used, unused]) await expect(endpoint()).rejects.toMatchObject({ code: 'closed' })
    expect(opened).toBe(1)
  })
})
