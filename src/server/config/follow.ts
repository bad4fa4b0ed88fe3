import { unwatchFile, watchFile } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { traceOf } from '../http/httpError.ts'
import type { Ways } from '../memoryRegistry.ts'
import type { Log } from '../observability/log.ts'
import { readText } from './file.ts'
import { type Loaded, loadSettings, type Said } from './load.ts'
import type { Given, Settings } from './settings.ts'

/** How a look at the file went: nothing new, or it counts from now on, or it is wrong and what held before still does. */
export type Outcome = 'same' | 'taken' | 'refused'

type Means = {
  readonly said: Said
  readonly loaded: Loaded
  readonly replace: (ways: Ways) => Promise<void>
  readonly log: Log
}

/** How often the file is looked at. */
const every: Millis = 1_000
/** What counts at once; everything else does after a restart. */
const atOnce = /^(?:profiles|templates|profile|tenantProfile|budget|sessions|secrets)$/

/**
 * Follows a configuration file: profiles and templates that change in it count from then on. What is wrong is told once and
 * changes nothing.
 */
export class Following {
  private readonly means: Means
  private settings: Settings
  private text: string | undefined
  private looking: Promise<Outcome> = Promise.resolve('same')

  constructor(means: Means) {
    this.means = means
    this.settings = means.loaded.settings
    this.text = means.loaded.text
  }

  /** Looks at the file now, after whoever looks at it already. */
  look(): Promise<Outcome> {
    this.looking = this.looking.then(() => this.take())
    return this.looking
  }

  /** Looks at the file whenever it changes; returns what ends that. */
  watch(): () => void {
    const { file } = this.settings
    if (file === undefined) return () => undefined
    const onChange = (): void => void this.look()
    watchFile(file, { interval: every, persistent: false }, onChange)
    return () => unwatchFile(file, onChange)
  }

  private async take(): Promise<Outcome> {
    const { said, replace, log } = this.means
    const { file } = this.settings
    if (file === undefined) return 'same'
    try {
      const text = readText(file)
      // Neither a file that was only touched nor a mistake that is known is told again.
      if (text === this.text) return 'same'
      this.text = text
      const { settings } = await loadSettings({ ...said, file })
      await replace(settings.ways)
      const later = changed(this.settings.given, settings.given).filter((field) => !atOnce.test(field))
      if (later.length > 0) log.fault('config', `${file}: ${later.join(', ')} will count after a restart.`)
      const { profiles, templates } = settings.config
      log.note('configured', { profiles: Object.keys(profiles).length, templates: Object.keys(templates).length })
      this.settings = settings
      return 'taken'
    } catch (error) {
      log.fault('config', traceOf(error))
      return 'refused'
    }
  }
}

const changed = (before: Given, after: Given): readonly string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    (field) => JSON.stringify(before.get(field)?.value) !== JSON.stringify(after.get(field)?.value),
  )
