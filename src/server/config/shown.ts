import { isObject } from '../../domain/checks.ts'
import type { Setting, Settings } from './settings.ts'

/** What stands in the place of a secret. */
const hidden = '***'

/** Settings as people may see them: every value with where it comes from, and no secret. */
export const shownSettings = ({ given }: Settings): ReadonlyMap<string, Setting> =>
  new Map([...given].map(([field, setting]) => [field, { ...setting, value: withoutSecrets(setting.value) }]))

/** A value without what stands in fields for keys and secrets, and without passwords and queries in addresses. */
function withoutSecrets(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return name === 'key' || name === 'secret' ? hidden : withoutPassword(value)
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item))
  if (!isObject(value)) return value
  // What another program is started or asked with: any of it may be a key.
  if (name === 'env' || name === 'headers')
    return Object.fromEntries(Object.keys(value).map((field) => [field, hidden]))
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, withoutSecrets(inner, field)]))
}

/** Some services want a key in the query. */
const withoutPassword = (text: string): string =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
    ? text.replace(/\/\/[^@/?]*@/, `//${hidden}@`).replace(/\?.*$/s, `?${hidden}`)
    : text
