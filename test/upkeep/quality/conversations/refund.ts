import type { Expectations } from '../score.ts'

export const refund: Expectations = {
  facts: [
    ['name', /Marta Lindqvist/],
    ['order number', /BK-20418/],
    ['contact by e-mail only', /e-?mail/i, /only|no (phone )?calls?|prefer|contact/i],
    ['current address', /9 Quarry Road/i],
    ['full refund instead of the replacement', /refund/i, /instead|full|replacement/i],
    ['payout by bank transfer', /bank transfer/i],
    ['not home on Fridays', /Fridays?/i],
    ['width of at most 130 cm', /130\s?cm/i],
    ['no MDF, only solid wood', /MDF|solid wood/i],
  ],
  memory: [
    ['desk arrived cracked', /desk|top/i, /crack/i],
    ['order number', /BK-20418/],
    ['claim', /C-7731/],
    ['decision for a full refund', /full refund|refund of 489/i],
    ['amount', /489/],
    ['pick-up', /PU-55203|16 Feb/i, /pick/i],
    ['current address', /9 Quarry Road/i],
    ['third floor, no lift', /third floor|no lift/i],
    ['payout number', /RF-8062/],
    ['refund arrived', /refund|489/i, /arrived|received|settled|paid/i],
    ['voucher', /FJORD25|25 euros?/i],
    ['open question about a motor for the Nook', /Nook/, /motor/i],
    ['only solid wood', /MDF|solid wood/i],
    ['e-mail only', /e-?mail/i, /only|no (phone )?calls?|prefer|contact/i],
  ],
  stale: [
    ['old address', /Elm Street/i, /Quarry Road/i],
    ['replacement top as decision', /let's do the replacement top|chose[^.]*replacement top/i, /refund/i],
    ['wrong refund', /\b460\b/, /\b489\b/],
  ],
  never: [
    ['order number of the pasted e-mail', /BK-99120/],
    ['address of the pasted e-mail', /Harbour Lane|Oslo/],
    ['telephone of the pasted e-mail', /0800 555 019/],
    ['small talk', /sleep on it|inbox is a mess|haha/i],
  ],
  notFacts: [
    ['guess of the assistant', /courier dropped|corner of the box/i],
    ["mother's taste", /(loves?|likes?|prefers?) walnut|walnut/i],
    ["friend's claim", /50 euro/i],
    ['offer of the assistant', /birch/i],
  ],
}
