import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AuditLog } from '../../src/mcp/files/audit.ts'
import type { AuditLine } from '../../src/mcp/files/auditChain.ts'
import { FileAccess, type FileAccessOptions } from '../../src/mcp/files/fileAccess.ts'

/** Content of files outside the allowed folder. */
export const secret = 'the crown jewels'

/** Creates an allowed folder, `app`, with attack files and links in and around it. */
export function createFilesFixture(options: Partial<FileAccessOptions> = {}) {
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
  const audit = new AuditLog(at('logs/audit.log'))
  const files = new FileAccess({
    allow: [at('app')],
    write: true,
    audit,
    clock: () => Date.UTC(2026, 0, 2),
    ...options,
  })
  const auditLines = (): AuditLine[] =>
    readFileSync(audit.file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditLine)
  /** Audit lines as text, with paths relative to the fixture. */
  const auditTexts = (): string[] =>
    auditLines().map(({ user, operation, path, outcome, why = '' }) =>
      [user, operation, path.replace(root, ''), outcome, why.replaceAll(root, '')].join(' ').trim(),
    )
  return {
    root,
    at,
    files,
    audit,
    auditLines,
    auditTexts,
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}
