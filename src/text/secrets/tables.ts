import { isExpression, isPassword, keyName, passwordName } from './namedValues.ts'
import type { SecretKind } from './rule.ts'
import { isGenerated, isMixed, isPlaceholder } from './values.ts'

/** Column whose values are secrets. */
export type SecretColumn = { readonly index: number; readonly kind: SecretKind; readonly isShortName: boolean }

/** Columns of a table. */
export type Columns = {
  readonly count: number
  readonly secret: readonly SecretColumn[]
  /** Set if the rows are accounts: a plain word is a password too. */
  readonly isAccount: boolean
}

/** Names of columns that hold secrets. `basic` and `authorization` are names of other columns too. */
export const columnName = `(${passwordName})|${keyName.replace('|authorization|bearer|basic', '')}`
const columnNameEnd = new RegExp(`(?:${columnName})$`, 'i')
const accountName =
  /^(?:name|nom|id|nombre|nome|imię|имя)$|user|login|e-?mail|account|client|host|benutzer|konto|usu[aá]rio|utilisateur|utente|gebruiker|логин|用户|ユーザ/i
/** Shorter names, such as `pass`, are also names of counts. */
const minNameCharacters = 5

/** Finds the columns that hold secrets. */
export function findColumns(names: readonly string[]): Columns {
  const secret = names.flatMap((name, index): readonly SecretColumn[] => {
    const match = columnNameEnd.exec(name)
    if (match === null) return []
    const kind = match[1] !== undefined ? 'password' : /key|secret/i.test(match[0]) ? 'key' : 'token'
    return [{ index, kind, isShortName: match[0].length < minNameCharacters }]
  })
  return { count: names.length, secret, isAccount: names.some((name) => accountName.test(name)) }
}

/** Sign within a value that is rare in words. */
const strongSign = /[!@#$%^&*~+=](?=.)/
/** Names of secrets and of styles: `S3_BUCKET_KEY`, `db-secret-v2`, `$color-blue-500`. */
const itemName = /^[$@#]?-{0,2}(?:[a-z]+\d{0,4}(?:[-_.][a-z]*\d{0,4})+|[A-Z]+\d{0,4}(?:_[A-Z]*\d{0,4})+)$/
/** Type, function or address in the place of a password: `varchar(255)`. */
const typeOrCall = /^[A-Za-z_][\w.]*\([^()]*\)$|^\w+:\/\//
const minShortKeyCharacters = 6
const minKeyCharacters = 8
const minPasswordCharacters = 4

/** Judges a value by its column. Columns of documentation hold descriptions, types and limits. */
export function isColumnSecret(value: string, { kind, isShortName }: SecretColumn, isAccount: boolean): boolean {
  if (/\s/.test(value) || isPlaceholder(value)) return false
  if (kind !== 'password') {
    if (isGenerated(value)) return true
    if (!isMixed(value) || itemName.test(value) || isExpression(value)) return false
    return strongSign.test(value)
      ? value.length >= minShortKeyCharacters
      : isAccount && value.length >= minKeyCharacters
  }
  if (value.length < minPasswordCharacters || (isShortName && !isAccount) || typeOrCall.test(value)) return false
  if (!isPassword(value, 'assigned', true, true)) return false
  return isAccount || isMixed(value) || /^\d{6,}$/.test(value) || (strongSign.test(value) && /[a-z]/i.test(value))
}
