import { unwatchFile, watchFile } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { describeFault } from '../http/httpError.ts'
import type { ProfileConfig } from '../memoryRegistry.ts'
import type { Log } from '../observability/log.ts'
import { readConfigText } from './configFile.ts'
import { type ConfigInput, type ConfigSource, type LoadedSettings, loadSettings, type Settings } from './settings.ts'

/** Result of a reload; after `rejected`, the previous settings stay in effect. */
export type ReloadResult = 'unchanged' | 'applied' | 'rejected'

export type ConfigWatcherOptions = {
  readonly input: ConfigInput
  readonly loaded: LoadedSettings
  readonly applyProfiles: (profiles: ProfileConfig) => Promise<void>
  readonly log: Log
}

const pollIntervalMs: Millis = 1_000
/** Fields that take effect at once; all others need a restart. */
const reloadableFields = /^(?:profiles|templates|profile|tenantProfile|budget|secrets)$/

/** Watches the configuration file and applies changed profiles and templates. An invalid file is logged once. */
export class ConfigWatcher {
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
  reload(): Promise<ReloadResult> {
    this.pending = this.pending.then(() => this.reloadIfChanged())
    return this.pending
  }

  /** Reloads the file whenever it changes; returns the function that stops watching. */
  watch(): () => void {
    const { file } = this.settings
    if (file === undefined) return () => undefined
    const onChange = (): void => void this.reload()
    watchFile(file, { interval: pollIntervalMs, persistent: false }, onChange)
    return () => unwatchFile(file, onChange)
  }

  private async reloadIfChanged(): Promise<ReloadResult> {
    const { input, applyProfiles, log } = this.options
    const { file } = this.settings
    if (file === undefined) return 'unchanged'
    try {
      const text = readConfigText(file)
      // Neither a touched file nor an error that was logged before is reported again.
      if (text === this.text) return 'unchanged'
      this.text = text
      const { settings } = await loadSettings({ ...input, file })
      await applyProfiles(settings.profiles)
      const [before, after] = [this.settings.values, settings.values]
      const needRestart = changedFields(before, after).filter((field) => !isReloadable(field, before, after))
      if (needRestart.length > 0) log.fault('config', `${file}: restart the server to apply ${needRestart.join(', ')}.`)
      const { profiles, templates } = settings.config
      log.event('configured', { profiles: Object.keys(profiles).length, templates: Object.keys(templates).length })
      this.settings = settings
      return 'applied'
    } catch (error) {
      log.fault('config', describeFault(error))
      return 'rejected'
    }
  }
}

/** Session memory can be turned on and off; another store needs a restart. */
const isReloadable = (field: string, before: ConfigSource, after: ConfigSource): boolean =>
  reloadableFields.test(field) ||
  (field === 'sessions' && [before, after].every((source) => typeof source.get(field)?.value === 'boolean'))

const changedFields = (before: ConfigSource, after: ConfigSource): readonly string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    (field) => JSON.stringify(before.get(field)?.value) !== JSON.stringify(after.get(field)?.value),
  )
