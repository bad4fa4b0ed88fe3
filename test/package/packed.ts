import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { root } from '../shape/source.ts'

const run = promisify(execFile)
const cache = join(root, 'node_modules/.cache/packed')
/** Files and folders that the content of the package depends on. */
const inputs = ['src', 'data', 'docs', 'examples', 'scripts', 'package.json', 'tsdown.config.ts', 'README.md']
const pollMs = 250
const staleMs = 300_000

/**
 * Packs the package as `npm publish` would, once for all test files and for as long as nothing changes: a build takes
 * half a minute, and two at once would write the same files. Returns the path of the tarball.
 */
export async function packPackage(): Promise<string> {
  const tarball = join(cache, `${hashInputs()}.tgz`)
  const lock = join(cache, 'lock')
  mkdirSync(cache, { recursive: true })
  for (; ; await delay(pollMs)) {
    if (exists(tarball)) return tarball
    if (!takeLock(lock)) continue
    try {
      for (const name of readdirSync(cache)) if (name !== 'lock') rmSync(join(cache, name), { recursive: true })
      await run('npm', ['pack', root, '--silent', '--pack-destination', lock], { cwd: cache })
      const [packed = ''] = readdirSync(lock)
      renameSync(join(lock, packed), tarball)
    } finally {
      rmSync(lock, { recursive: true, force: true })
    }
  }
}

function takeLock(lock: string): boolean {
  try {
    mkdirSync(lock)
    return true
  } catch {
    // A process that was killed leaves its lock behind.
    if (Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > staleMs)
      rmSync(lock, { recursive: true, force: true })
    return false
  }
}

const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined

function hashInputs(): string {
  const hash = createHash('sha256')
  for (const input of inputs) {
    const path = join(root, input)
    const files = statSync(path).isDirectory() ? readdirSync(path, { recursive: true }) : ['']
    for (const file of files.map(String).sort()) {
      const { mtimeMs, size } = statSync(join(path, file))
      hash.update(`${input}/${file} ${mtimeMs} ${size}\n`)
    }
  }
  return hash.digest('hex').slice(0, 16)
}

/**
 * Creates the `node_modules` of a project in `folder`: the packed package, and every package of this repository as a
 * link. Such a project must be outside of `node_modules`, where Node runs no TypeScript.
 */
export async function installPackage(folder: string): Promise<void> {
  const tarball = await packPackage()
  const packages = join(folder, 'node_modules')
  mkdirSync(join(packages, 'threadkeep'), { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules')))
    if (!name.startsWith('.')) symlinkSync(join(root, 'node_modules', name), join(packages, name))
  await run('tar', ['-xzf', tarball, '-C', join(packages, 'threadkeep'), '--strip-components', '1'])
}
