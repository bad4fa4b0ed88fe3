import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Audit } from '../../src/mcp/files/audit.ts'
import type { Line } from '../../src/mcp/files/chain.ts'
import { FileDesk, type FileDeskOptions } from '../../src/mcp/files/desk.ts'

/** What no client may ever see. */
export const secret = 'the crown jewels'

/** A folder that clients may use, `app`, with what attackers put in and around it. */
export function stage(options: Partial<FileDeskOptions> = {}) {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-files-'))
  const at = (...names: string[]): string => join(root, ...names)
  for (const folder of ['app/notes', 'app-evil', 'outside/deep', 'ann', 'logs'])
    mkdirSync(at(folder), { recursive: true })
  writeFileSync(at('app/hello.txt'), 'Hello.\n')
  writeFileSync(at('app/notes/today.md'), '# Today\n')
  writeFileSync(at('ann/own.txt'), 'Mine.\n')
  for (const file of ['app-evil/secret.txt', 'outside/secret.txt', 'outside/deep/secret.txt'])
    writeFileSync(at(file), secret)
  symlinkSync(at('outside/secret.txt'), at('app/link.txt'))
  symlinkSync(at('outside'), at('app/linked'))
  symlinkSync(at('outside/nowhere.txt'), at('app/dangling.txt'))
  symlinkSync(at('app/loop'), at('app/loop'))
  symlinkSync(at('app/notes'), at('app/inner'))
  symlinkSync(at('app'), at('shortcut'))
  const audit = new Audit(at('logs/audit.log'))
  const desk = new FileDesk({ allow: [at('app')], write: true, audit, clock: () => Date.UTC(2026, 0, 2), ...options })
  const lines = (): Line[] =>
    readFileSync(audit.file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
  const told = (): string[] =>
    lines().map(({ user, operation, path, outcome, why = '' }) =>
      [user, operation, path.replace(root, ''), outcome, why.replaceAll(root, '')].join(' ').trim(),
    )
  return { root, at, desk, audit, lines, told, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) }
}
