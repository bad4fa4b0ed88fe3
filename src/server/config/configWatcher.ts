import { unwatchFile, watchFile } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { traceOf } from '../http/httpError.ts'
import type { Ways } from '../memoryRegistry.ts'
import type { Log } from '../observability/log.ts'
import { readConfigText } from './configFile.ts'
import { type Given, type Loaded, loadSettings, type Said, type Settings } from './settings.ts'

/** Result of a reload; after `rejected`, the previous settings stay in effect. */
export type ReloadResult = 'unchanged' | 'applied' | 'rejected'

export type ConfigWatcherOptions = {
  readonly said: Said
  readonly loaded: Loaded
  readonly replace: (ways: Ways) => Promise<void>
  readonly log: Log
}

const pollIntervalMs: Millis = 1_000
/** Fields that take effect at once; all others need a restart. */
const reloadableFields = /^(?:profiles|templates|profile|tenantProfile|budget|sessions|secrets)$/

/** Watches the configuration file and applies changed profiles and templates. An invalid file is logged once. */
export class Following {
  private readonly options: ConfigWatcherOptions
  private settings: Settings
  private text: string | undefined
  private pending: Promise<ReloadResult> = Promise.resolve('unchanged')

  constructor(options: ConfigWatcherOptions) {
    this.options = options
    this.settings = options.loaded.settings
    this.text = options.loaded.text
  }

  /** Reloads the file now, after a reload that is already running. */
  look(): Promise<ReloadResult> {
    this.pending = this.pending.then(() => this.reloadIfChanged())
    return this.pending
  }

  /** Reloads the file whenever it changes; returns the function that stops watching. */
  watch(): () => void {
    const { file } = this.settings
    if (file === undefined) return () => undefined
    const onChange = (): void => void this.look()
    watchFile(file, { interval: pollIntervalMs, persistent: false }, onChange)
    return () => unwatchFile(file, onChange)
  }

  private async reloadIfChanged(): Promise<ReloadResult> {
    const { said: input, replace, log } = this.options
    const { file } = this.settings
    if (file === undefined) return 'unchanged'
    try {
      const text = readConfigText(file)
      // Neither a touched file nor an error that was logged before is reported again.
      if (text === this.text) return 'unchanged'
      this.text = text
      const { settings } = await loadSettings({ ...input, file })
      await replace(settings.ways)
      const needRestart = changedFields(this.settings.given, settings.given).filter(
        (field) => !reloadableFields.test(field),
      )
      if (needRestart.length > 0) log.fault('config', `${file}: restart the server to apply ${needRestart.join(', ')}.`)
      const { profiles, templates } = settings.config
      log.note('configured', { profiles: Object.keys(profiles).length, templates: Object.keys(templates).length })
      this.settings = settings
      return 'applied'
    } catch (error) {
      log.fault('config', traceOf(error))
      return 'rejected'
    }
  }
}

const changedFields = (before: Given, after: Given): readonly string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    (field) => JSON.stringify(before.get(field)?.value) !== JSON.stringify(after.get(field)?.value),
  )
