import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { installPackage } from '../installPackage.ts'

const paths = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Starts the installed Chromium without connections of its own. Throws if there is none and it cannot be installed. */
export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? findChromium() ?? installChromium(),
    args: [
      '--no-sandbox',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
}

const findChromium = (): string | undefined => paths.find((path) => existsSync(path))

/** Installs Debian's package, which only root may do. */
function installChromium(): string {
  installPackage('chromium')
  const installed = findChromium()
  if (installed !== undefined) return installed
  throw new Error(
    'Chromium is not installed. Install it (on Debian: apt install chromium), or set CHROMIUM_PATH to its path.',
  )
}
