/** All that is known by how it looks is at least so long, of these characters; few words are. */
const longRun = 20
const isPart = Uint8Array.from({ length: 128 }, (_, code) => Number(/[\w~.+/:=%-]/.test(String.fromCharCode(code))))

/** Whether a text holds a run like that. Looks from the end of a run backwards, so that most characters are passed by. */
export function hasLongRun(text: string): boolean {
  for (let from = 0; from + longRun <= text.length; ) {
    let at = from + longRun - 1
    while (at >= from && isPart[text.charCodeAt(at)] === 1) at--
    if (at < from) return true
    from = at + 1
  }
  return false
}
