import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { newChange, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { postgresStore } from '../../../src/stores/postgres.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createCertificate } from '../../support/certificate.ts'
import { startPostgres } from '../../support/postgresServer.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-tls-'))
const server = await startPostgres()
afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** Creates a certificate for the server, which accepts TLS from then on. Returns its file. */
async function enableTls(): Promise<string> {
  const { certificate, secret } = createCertificate(folder)
  const { uid, gid } = statSync(server.dataFolder)
  for (const [file, name] of [
    [certificate, 'server.crt'],
    [secret, 'server.key'],
  ] as const) {
    copyFileSync(file, join(server.dataFolder, name))
    chownSync(join(server.dataFolder, name), uid, gid)
    chmodSync(join(server.dataFolder, name), 0o600)
  }
  await server.administer('ALTER SYSTEM SET ssl = on')
  await server.administer('SELECT pg_reload_conf()')
  return certificate
}

describe('postgresStore › over TLS', () => {
  verifies('T-17', 'with a certificate of an own authority › needs its file and the name of the host', async () => {
    const plain = await server.createDatabase()
    const certificate = await enableTls()
    const url = (host: string, parameters: string) =>
      `${plain.replace('127.0.0.1', host)}?connect_timeout=1&${parameters}`
    const trusted = `sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}`
    const store = await postgresStore(url('localhost', trusted))
    await store.commit(newChange('1', { append: [newMessage('The walrus is called Bruno.')] }))
    expect((await store.list({ limit: 9 })).map(({ key }) => key.scope)).toEqual([parseKey('acme:ann').scope])
    // Connections that listen for erasures too.
    const connections = await server.administer(
      "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'threadkeep'",
    )
    expect(connections).toEqual([{ ssl: true }])
    await store.close()

    for (const [refused, reason] of [
      [url('localhost', 'sslmode=verify-full'), 'SELF_SIGNED'],
      [url('127.0.0.1', trusted), 'ALTNAME'],
    ] as const) {
      const opened = postgresStore(refused)
      await expect(opened).rejects.toMatchObject({ code: 'bad-store', message: expect.stringContaining(reason) })
      expect(String(await opened.catch((error: unknown) => error))).not.toContain('correct-horse')
    }
  })
})
