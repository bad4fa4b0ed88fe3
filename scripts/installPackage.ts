import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Installs a Debian package where this process may. Processes that do so at the same time wait for each other. */
export function installPackage(name: string): void {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return
  const install = `apt-get update --quiet; apt-get -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends ${name}`
  spawnSync('flock', [join(tmpdir(), 'threadkeep-apt.lock'), 'sh', '-c', install], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: 'ignore',
  })
}
