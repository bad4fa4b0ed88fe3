import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../shape/source.ts'

export const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  readonly version: string
  readonly exports: Readonly<Record<string, unknown>>
  readonly bin: { readonly threadkeep: string }
}

/** Project outside the repository with the packed package as its only dependency. */
export type InstalledPackage = {
  readonly folder: string
  readonly tarball: string
  /** File of the `threadkeep` command. */
  readonly command: string
}

/** Builds and packs the package and installs it without access to a registry. */
export function installPackage(): InstalledPackage {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-package-'))
  const run = (...args: readonly string[]): string => execFileSync('npm', args, { cwd: folder, encoding: 'utf8' })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  run('pack', root, '--silent', '--pack-destination', folder)
  const tarball = join(folder, `threadkeep-${manifest.version}.tgz`)
  run('install', '--offline', '--no-audit', '--no-fund', '--silent', tarball)
  return { folder, tarball, command: join(folder, 'node_modules/threadkeep', manifest.bin.threadkeep) }
}

/** Installs another version of Node from npm, once for all runs, and returns its executable. */
export function installNode(version: string): string {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  const folder = join(root, 'node_modules/.cache/nodes', version)
  const file = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(file)) return file
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--silent', `${name}@${version}`], { cwd: folder })
  return file
}
