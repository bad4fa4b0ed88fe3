import {
  findCards,
  findKnownFormats,
  findNamedSecrets,
  findPemBlocks,
  findRequestSecrets,
  findStatedSecrets,
  maskPattern,
  mayContainCards,
  mayContainNamedSecrets,
  mayContainPem,
  mayContainRequestSecrets,
  mayContainStatedSecrets,
  type SecretMatch,
} from './secretPatterns.ts'

/** Minimum length of every key format, in characters of `isKeyCharacter`; few words are that long. */
const minKeyCharacters = 20
const isKeyCharacter = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[\w~.+/:=%-]/.test(String.fromCharCode(code))),
)

/**
 * Cheap prefilter: if false, the text contains no key of a known format. Checks windows from their end backwards, so
 * that most characters are skipped.
 */
export function mayContainKeys(text: string): boolean {
  for (let from = 0; from + minKeyCharacters <= text.length; ) {
    let at = from + minKeyCharacters - 1
    while (at >= from && isKeyCharacter[text.charCodeAt(at)] === 1) at--
    if (at < from) return true
    from = at + 1
  }
  return false
}

/**
 * Prefilter for everything but keys of known formats: one scan rejects most texts. Alternatives with a common start are
 * factored.
 */
const secretHint =
  /p(?:ass|wd|in)|s(?:e(?:cret|nha|ed)|ign ?in)|token|key|auth|b(?:earer|asic|ackup)|c(?:o(?:ntraseña|okie|de)|v[vc]|redential)|m(?:ot de|nemonic)|пароль|密码|パスワード|identified by|:\/\/|otp|log ?in|recovery|\s-u|--(?:user|---)|\d{4}(?:[ -]\d{4}|\d{9})/i
/** Overwrites found secrets; no pattern accepts this character in a name or value. */
const blank = '⟨'
/**
 * A secret hidden by a neighbouring one is found in the next pass; four passes suffice for all but adversarial texts.
 */
const maxPasses = 4

/** Detectors, each with its prefilter. */
const detectors: readonly (readonly [mayContain: (text: string) => boolean, find: (text: string) => SecretMatch[]])[] =
  [
    [mayContainPem, findPemBlocks],
    [mayContainKeys, findKnownFormats],
    [mayContainRequestSecrets, findRequestSecrets],
    [mayContainCards, findCards],
    [mayContainStatedSecrets, findStatedSecrets],
    [mayContainNamedSecrets, findNamedSecrets],
  ]

/**
 * Finds secrets in a text, in order and without overlaps; `text.slice(start, end)` is exactly what must be replaced.
 *
 * @example
 * findSecrets('my password is hunter2') // [{ kind: 'password', start: 15, end: 22 }]
 */
export function findSecrets(text: string): readonly SecretMatch[] {
  if (!mayContainKeys(text) && !secretHint.test(text)) return []
  const found: SecretMatch[] = []
  let rest = text.replace(maskPattern, ({ length }) => blank.repeat(length))
  for (let pass = 0; pass < maxPasses; pass++) {
    const more = mergeOverlapping(detectors.flatMap(([mayContain, find]) => (mayContain(rest) ? find(rest) : [])))
    if (more.length === 0) break
    found.push(...more)
    rest = blankOut(rest, more)
  }
  return mergeOverlapping(found)
}

function blankOut(text: string, found: readonly SecretMatch[]): string {
  let result = ''
  let reached = 0
  for (const { start, end } of found) {
    result += text.slice(reached, start) + blank.repeat(end - start)
    reached = end
  }
  return result + text.slice(reached)
}

/** Merges overlapping matches, so that no part of either remains; the first one determines the kind. */
function mergeOverlapping(found: readonly SecretMatch[]): SecretMatch[] {
  const merged: SecretMatch[] = []
  for (const secret of [...found].sort((left, right) => left.start - right.start || right.end - left.end)) {
    const last = merged.at(-1)
    if (last === undefined || secret.start >= last.end) merged.push(secret)
    else if (secret.end > last.end) merged[merged.length - 1] = { ...last, end: secret.end }
  }
  return merged
}

/** Formats the mask that replaces a secret. */
export const formatMask = (number: number): string => `⟨secret:${number}⟩`

/** Finds the masks in a text. */
export const findMasks = (text: string): readonly string[] =>
  text.includes('⟨secret:') ? (text.match(maskPattern) ?? []) : []

/**
 * Replaces each secret of a text by a mask.
 *
 * @example
 * maskSecrets('my password is hunter2', () => '⟨secret:7⟩') // 'my password is ⟨secret:7⟩'
 */
export function maskSecrets(text: string, createMask: (secret: string) => string): string {
  let [result, from] = ['', 0]
  for (const { start, end } of findSecrets(text)) {
    result += text.slice(from, start) + createMask(text.slice(start, end))
    from = end
  }
  return from === 0 ? text : result + text.slice(from)
}

/** Replaces masks by their values; an unknown mask stays. */
export const unmaskSecrets = (text: string, lookup: (mask: string) => string | undefined): string =>
  text.replace(maskPattern, (mask) => lookup(mask) ?? mask)

/** Replaces all secrets and all masks by the same mask, so that the text sent and the text stored compare equal. */
export const normalizeSecrets = (text: string): string =>
  maskSecrets(text, () => formatMask(0)).replace(maskPattern, formatMask(0))
