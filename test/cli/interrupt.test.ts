import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { exportBundle } from '../../src/portable/export.ts'
import { openStore } from '../../src/stores/open.ts'
import { readAll } from '../portable/byteStreams.ts'
import { conversation, createStoreWith } from '../portable/histories.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness } from './cliHarness.ts'
import { startCommand } from './command.ts'

const { folder } = createCliHarness('interrupt')
const store = `sqlite:${join(folder, 'threadkeep.db')}`
const messagesPerSession = 700

/** Lists the sessions in the file with the number of their messages. */
async function listSessions(): Promise<readonly number[]> {
  if (!existsSync(join(folder, 'threadkeep.db'))) return []
  const opened = await openStore(store)
  try {
    return (await opened.list({ limit: 1_000 })).map(({ messages }) => messages)
  } finally {
    await opened.close()
  }
}

describe('Ctrl-C', () => {
  verifies(['S-02', 'P-04'], 'during an import › completes the session in progress and exits with 130', async () => {
    const texts = Array.from({ length: messagesPerSession }, (_, index) => `Message ${index} about the plan.`)
    const sessions = Array.from({ length: 40 }, (_, index) => conversation(`acme:s${index}`, texts))
    writeFileSync(join(folder, 'all.jsonl'), await readAll(exportBundle(await createStoreWith(...sessions))))
    const running = startCommand(['import', 'all.jsonl'], { THREADKEEP_STORE: store }, folder)
    while ((await listSessions()).length === 0) await delay(20)
    running.process.kill('SIGINT')
    const { code, stdout, stderr } = await running.result
    expect([code, stdout]).toEqual([130, ''])
    expect(stderr).toMatch(
      /^threadkeep: Interrupted after \d+ sessions?, which are complete\. Import the same file again to continue\.\n$/,
    )
    const imported = await listSessions()
    expect(imported.length).toBeGreaterThan(0)
    expect(imported.length).toBeLessThan(40)
    expect(new Set(imported)).toEqual(new Set([messagesPerSession]))
    expect(readdirSync(folder).filter((name) => name.endsWith('.unfinished'))).toEqual([])
  })

  verifies('S-02', 'during other work › exits with 130', async () => {
    const running = startCommand(['chat', '--store', 'ram:', '--json'], {}, folder)
    running.process.stdin?.write('Hello\n')
    await running.waitForOutput('\n')
    running.process.kill('SIGINT')
    expect((await running.result).code).toBe(130)
  })
})
