/** Signs of importance in a sentence. */
export type Cue = 'decision' | 'constraint' | 'preference' | 'outcome' | 'problem' | 'nextStep'

/** Matches any of the alternatives as whole words, in texts of any script. */
const words = (...alternatives: readonly string[]): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{N}])(?:${alternatives.join('|')})(?![\\p{L}\\p{N}])`, 'iu')
const stem = '\\p{L}{0,6}'

// One line each: English, German, French, Spanish, Portuguese, Dutch.
const cuePatterns: Readonly<Record<Cue, RegExp>> = {
  decision: words(
    `decided?|decision|agreed (?:on|to|that)|we (?:have )?agreed?|(?:let['’]s|let us|we(?:['’]ll| will)|i(?:['’]ll| will)) (?:use|go|do|keep|take|stay|stick|pick|call it)|(?:let['’]s|we|i|to) go(?:ing)? with|we take the|it is(?: then)?(?=[.!]|$)|stay with|settled? on|cho(?:se|sen)|opt(?:ed)? for|approved|signed off|picked (?!up)|noted|chang\\w{1,3} my mind|switch\\w{0,4} to|moved to|instead|confirmed|booked|final|no longer|from now on`,
    `entschieden|entscheid${stem}|beschlossen|(?:wir|ich) nehmen?|nehmen wir|geeinigt|festgelegt|stattdessen|doch lieber|bleiben bei|bleibt bei|gebucht|bestätigt|ab jetzt`,
    `décid${stem}|décision|(?:on|nous) (?:prend|prenons|part|partons|garde|gardons)|choisi${stem}|retenu${stem}|convenu|changé d['’]avis|à la place|finalement|réservé${stem}|confirmé${stem}|désormais`,
    `decid${stem}|decisión|eleg${stem}|vamos (?:con|a usar)|usaremos|optamos|acorda${stem}|cambié de opinión|en su lugar|en vez de|finalmente|quedamos|reserva(?:mos|do|da)|confirma(?:mos|do|da)|a partir de ahora`,
    `decisão|escolh${stem}|vamos (?:com|usar)|combina(?:do|mos)|mudei de ideia|em vez de|em vez disso|ficamos|reserv(?:ei|ado|ada)|a partir de agora`,
    `besloten|beslissing|gekozen|kiezen (?:we )?voor|(?:we|ik) (?:gaan|ga) voor|(?:we|ik) nemen?|afgesproken|van gedachten|in plaats (?:daar)?van|toch liever|geboekt|bevestigd|voortaan`,
  ),
  constraint: words(
    `never|must(?:n['’]t)?|always|do not|don['’]t (?!know|think|worry|mind|see|have|understand|believe|remember)|only|without|except|unless|no more than|not more than|at most|at least|under \\d+|budget|deadline|due|allergic|allerg(?:y|ies)|not allowed|forbidden|required?|requires|has to|have to|limit(?:ed)?|maximum|avoid|no later than`,
    `nie|niemals|m[uü]ss(?:en|t)?|d[aü]rf(?:en|t)?|nur|ohne|kein(?:e[nrms]?)?|höchstens|mindestens|maximal|immer|frist|allergi${stem}|vermeid${stem}|spätestens`,
    `jamais|doi(?:t|s|vent)|toujours|seulement|uniquement|sans|sauf|ne (?:pas|plus)|pas plus de|au (?:plus|moins|maximum)|maximum|délai|échéance|date limite|allergi${stem}|éviter|interdit${stem}|faut`,
    `nunca|deb(?:e|en|emos)|siempre|sólo|solo|solamente|sin|excepto|salvo|no más de|como máximo|al menos|máximo|presupuesto|plazo|fecha límite|alérgic[oa]|alergia|evitar|prohibido|hay que|tiene que`,
    `jamais|dev(?:e|em|emos)|sempre|só|somente|apenas|sem|exceto|no máximo|pelo menos|máximo|orçamento|prazo|alérgic[oa]|alergia|evit(?:ar|e)|proibido|tem que|precisa`,
    `nooit|moet(?:en)?|mag|mogen|altijd|alleen|zonder|behalve|geen|hoogstens|minstens|maximaal|uiterlijk|allergi(?:e|sch)|vermijd${stem}|verboden`,
  ),
  preference: words(
    `prefer(?:s|red|ence)?|favou?rite|i(?:['’]d| would)? (?:really |also )?(?:like|love|hate|want|need)|please (?:keep|use|answer|reply|write|call|send|remember)|remember(?: that)?|rather`,
    `lieber|bevorzug${stem}|möchte|hätte gerne?|ich (?:mag|will|brauche|hasse|liebe)|am liebsten|bitte`,
    `préf[èé]r${stem}|j['’](?:aime|adore)|je (?:veux|voudrais|déteste)|souhait${stem}|s['’]il (?:vous|te) pla[iî]t|plutôt`,
    `prefier[oea]${stem}|prefer${stem}|me gusta(?:n|ría)?|quier[oe]|quisiera|necesito|odio|por favor`,
    `prefir[oa]|gost[oa](?:ria)?|quero|queria|preciso|odeio|por favor`,
    `liever|voorkeur|graag|ik (?:wil|heb nodig|haat)|het liefst|alsjeblieft|alstublieft`,
  ),
  outcome: words(
    `i(?:['’]ve| have) (?:now |just |also )?\\p{L}{2,12}(?:ed|en|et|t|wn)|i (?:open|close|book)|fixed|resolved|solved|works? (?:now|again|fine)|working now|done|complete[d]?|finished|pass(?:es|ed|ing)?|deployed|merged|shipped|sent|refunded|cancell?ed|released|created|implemented|installed|updated|removed|deleted|added|failed|turned out|found (?:that|out)|root cause|the (?:cause|reason|result)|because of|as a result|scheduled|replaced`,
    `behoben|gelöst|erledigt|fertig|abgeschlossen|funktioniert|storniert|erstattet|verschickt|versendet|gesendet|ersetzt|gelöscht|ursache|grund|ergebnis|vereinbart`,
    `corrigé${stem}|résolu${stem}|terminé${stem}|envoyé${stem}|remboursé${stem}|annulé${stem}|fonctionne|livré${stem}|remplacé${stem}|supprimé${stem}|résultat`,
    `resuelt[oa]|arreglad[oa]|terminad[oa]|enviad[oa]|reembols${stem}|cancelad[oa]|funciona|entregad[oa]|reemplazad[oa]|eliminad[oa]|resultado|causa`,
    `resolvid[oa]|corrigid[oa]|conclu[ií]d[oa]|enviad[oa]|reembols${stem}|cancelad[oa]|entregue|substitu[ií]d[oa]|apagad[oa]|resultado`,
    `opgelost|afgerond|klaar|verzonden|verstuurd|terugbetaald|geannuleerd|werkt|geleverd|vervangen|verwijderd|oorzaak|resultaat`,
  ),
  problem: words(
    `errors?|bugs?|fail(?:s|ing|ure)?|broken|crash(?:es|ed)?|issues?|problems?|doesn['’]t work|not working|stuck|missing|wrong|pending|open question|still|not yet|unclear|waiting|blocked|unresolved`,
    `fehler|probleme?|kaputt|defekt|offen|noch nicht|noch immer|geht nicht|fehlt|unklar|beschädigt|wart${stem}`,
    `erreurs?|problèmes?|panne|en attente|pas encore|toujours pas|manque|cassé${stem}|endommagé${stem}|bloqué${stem}`,
    `errores|fallos?|problemas?|pendiente|todavía no|aún no|falta|rot[oa]|dañad[oa]|bloquead[oa]`,
    `erros?|falhas?|problemas?|pendente|ainda não|falta|quebrad[oa]|danificad[oa]|bloquead[oa]`,
    `fouten?|storing|problemen|probleem|kapot|nog niet|nog steeds|ontbreekt|beschadigd|wacht${stem}`,
  ),
  nextStep: words(
    `next(?: step)?|to-?do|remaining|i['’]ll|we['’]ll|will|plan(?:s|ned|ning)? to|going to|tomorrow|follow[- ]up`,
    `nächste[rsnm]?|danach|morgen|werde(?:n)?|geplant|planen?`,
    `prochaine?s?|ensuite|demain|prévoi[st]|prévu${stem}`,
    `siguiente|próxim[oa]s?|mañana|después|planea${stem}`,
    `seguinte|amanhã|depois|planej${stem}`,
    `volgende|daarna|gepland|zal|zullen`,
  ),
}

const cueNames = Object.keys(cuePatterns) as Cue[]

/** Finds the cues of a sentence. */
export const findCues = (text: string): readonly Cue[] => cueNames.filter((cue) => cuePatterns[cue].test(text))

/** Starts of greetings, thanks and praise: a short sentence without figures that begins like this says nothing. */
const pleasantStart = new RegExp(
  `^[¡¿]?(?:${[
    `hi|hello|hey|thanks?|thank you|thx|cheers|great|perfect|awesome|amazing|wonderful|fantastic|cool|nice|lovely|wow|yay|sure|ok(?:ay)?|alright|all right|got it|understood|no (?:problem|worries)|you['’]?re (?:welcome|right|so)|that['’]?s (?:great|awesome|amazing|wonderful|fantastic|so|really|lovely|cool|good|nice|a great)|sounds? (?:good|great|like|amazing|fun)|good (?:morning|evening|afternoon|night|question|catch|luck|job|to|decision|idea|choice|news)|have a|bye|see you|take care|congrat\\w*|glad|happy to|of course|absolutely|certainly|exactly|definitely|will do|yep|yeah|yup|right|keep it up|well done|so (?:glad|happy|cool|proud|sweet)|i appreciate|appreciate|how are you|what['’]s up|how can i help|anything else|any other|hope|welcome|sorry|my pleasure|much appreciated|go ahead|continue|please continue|one moment|let me check|looking forward|good point|aww+|haha\\w*|hm+|oh|ah|morning|evening|excellent|makes sense|(?:ok )?do it|fine|super|that['’]s (?:all|it)|wishing|(?:i )?(?:totally|completely|100%|fully|really)? ?agreed?|i know,? right|same here|me too|so true|true|indeed|interesting|what a|how (?:nice|cool|lovely|sweet|exciting|wonderful)|can['’]t wait|keep (?:up|going)|best of luck|enjoy`,
    `hallo|guten (?:tag|morgen|abend)|danke|vielen dank|gern(?:e)?(?: geschehen)?|bitte (?:sehr|schön)|super|toll|prima|alles klar|verstanden|schönen (?:tag|abend)|tschüss|auf wiedersehen|kein problem|sehr gut|natürlich|klar|perfekt|wie geht`,
    `bonjour|bonsoir|salut|merci|de rien|parfait|super|génial|d['’]accord|très bien|bien sûr|bonne (?:journée|soirée)|au revoir|pas de (?:problème|souci)|avec plaisir|je vous en prie|compris|entendu`,
    `hola|buen(?:os|as) (?:días|tardes|noches)|(?:muchas )?gracias|de nada|perfecto|genial|vale|muy bien|claro|por supuesto|adiós|hasta luego|entendido|con gusto|estupendo`,
    `olá|oi|bom dia|boa (?:tarde|noite)|(?:muito )?obrigad[oa]|de nada|perfeito|ótimo|tudo bem|claro|entendido|tchau|até logo|com prazer`,
    `hoi|goede(?:morgen|middag|navond)|dag|dank(?:u|je| je| u)?|bedankt|graag gedaan|prima|top|geen probleem|tot ziens|fijne dag|natuurlijk|begrepen`,
  ].join('|')})(?![\\p{L}\\p{N}])`,
  'iu',
)
/** Starts of stock phrases of any length. */
const stockStart = new RegExp(
  `^(?:${[
    `let me know|feel free|i hope|hope (?:this|that|you)|(?:please )?(?:don['’]?t|do not) hesitate|i understand (?:how|your|that|why)|i(?:['’]m| am) (?:so |very |really )?(?:sorry|glad|happy|here|thrilled)|is there anything|thank you (?:for|so)|thanks (?:for|so)|please let me know|if you (?:have|need) any|would you like (?:me )?to|do you (?:want me|need) (?:to|any)|i['’]d be happy|i can help|certainly|here(?:['’]s| is| are) (?:a|an|the|some|how|your)\\b[^.]{0,80}:$|by following|i apologi[sz]e|let['’]s (?:take a look|break)`,
    `es tut mir leid|melden sie sich|ich hoffe|kann ich (?:ihnen |dir )?(?:sonst|noch)|gibt es sonst|vielen dank für`,
    `je suis désolé|n['’]hésitez pas|j['’]espère|puis-je vous aider|merci (?:pour|de)|y a-t-il autre`,
    `lo siento|lamento|no dude|espero|puedo ayudar|hay algo más|gracias por`,
    `lamento|sinto muito|não hesite|espero|posso ajudar|há mais|obrigad[oa] por`,
    `het spijt me|aarzel niet|ik hoop|kan ik (?:je|u) (?:nog|verder)|bedankt voor`,
  ].join('|')})`,
  'iu',
)
const maxPleasantWords = 9

/** True for greetings, thanks, praise and stock phrases, which say nothing about the conversation. */
export function isPleasantry(text: string, words: number): boolean {
  if (/\d(?!00?%)|[\w-][/_@][\w-]|[a-z]\.[a-z]/i.test(text)) return false
  if (stockStart.test(text)) return true
  if (words > maxPleasantWords || !(pleasantStart.test(text) || pleasantStart.test(text.replace(lead, ''))))
    return false
  return !cuePatterns.decision.test(text) && !cuePatterns.constraint.test(text)
}

/** Openings that refer to the sentence before; "this week" and "that is why we" stand for themselves. */
const danglingStart = new RegExp(
  `^(?:${[
    `it(?:['’](?:s|ll|d))?|its|they(?:['’](?:re|ve|ll|d))?|he|she|him|her|their|these|those|this|that(?:['’]s)?|such|both|neither|either|so|but|and|or|also|then|however|therefore|otherwise|because|though|plus|which|same|the (?:latter|former|other|second|first) one|ones?|there|here|too|besides|in that case|if so|if not|until then|till then|by then|for (?:example|instance)|as (?:such|above)|again`,
    `es|sie|er|das|dies(?:e[rsmn]?)?|aber|und|oder|auch|dann|deshalb|daher|trotzdem|sonst|dort|dafür|damit|dabei|denn|bis dahin`,
    `il|elle|ils|elles|cela|ça|ce(?:ci)?|c['’]est|mais|et|ou|aussi|donc|alors|pourtant|sinon|parce|d['’]ici là|jusque-là`,
    `esto|eso|esa?|este|pero|y|o|también|entonces|por eso|además|sino|porque|hasta entonces|ell[oa]s?|él`,
    `isso|isto|esse|essa|ele|ela|eles|elas|mas|e|ou|também|então|por isso|além|porque|até lá`,
    `het|hij|zij|ze|dat|dit|deze|maar|en|of|ook|dan|daarom|toch|want|anders|tot dan`,
  ].join('|')})(?![\\p{L}\\p{N}])`,
  'iu',
)
const timeStart =
  /^(?:this|that|these|those|dies\p{L}{1,2}|ce(?:tte)?|est[ae]|ess[ae]|deze|dit) (?:week|weekend|month|year|morning|afternoon|evening|summer|winter|spring|autumn|fall|time|woche|monat|jahr|semaine|mois|année|semana|mes|mês|año|ano|maand|jaar|(?:mon|tues|wednes|thurs|fri|satur|sun)day)/iu

/** Pronouns as objects in a short sentence: "I chose them because they help." */
const danglingObject =
  /^(?:i|we|you)(?:['’]\w{1,2})? (?:\p{L}+ ){1,3}(?:them|it|that|those|these|this)(?![\p{L}\p{N}])/iu
const maxFragmentWords = 3

/** True if a sentence refers to the one before, or is too short to be clear without it. */
export const isDangling = (text: string, words: number): boolean =>
  ((danglingStart.test(text) || danglingObject.test(text)) && !timeStart.test(text)) ||
  words <= maxFragmentWords ||
  (words === maxFragmentWords + 1 && /^[^.:]*[!?]$|^\P{Lu}/u.test(text))

/** Words by which a sentence replaces what was said earlier. */
const strongRetraction = words(
  `changed? (?:my|our|his|her|their) minds?|instead(?: of)?|no longer|not any ?more|correction|scratch that|forget (?:what|about)|rather than|switch(?:ed|ing)? (?:from|to)|(?:moved?|moving|shift(?:ed|ing)?|push(?:ed|ing)?|bring|brought) (?:[\\p{L}\\d]+ ){0,4}(?:to|from|forward|back)|(?:have|has|i['’]ve|was|were|is|are|be|been) (?:now |just |been )?(?:changed|corrected|updated|moved|postponed|rescheduled|replaced|extended)|postponed|rescheduled|i meant|i was wrong|on second thought|no,? sorry`,
  `anders überlegt|stattdessen|nicht mehr|doch (?:lieber|nicht)|korrektur|verschoben|geändert|umgezogen`,
  `changé d['’]avis|à la place|au lieu|ne plus|correction|report(?:e|é|ons)${stem}|repouss(?:e|é|ons)${stem}|décal(?:e|é|ons)${stem}|déménagé`,
  `cambié de (?:opinión|idea)|en vez de|en lugar de|en su lugar|ya no|corrección|aplaza(?:mos|d[oa])|retras(?:amos|ad[oa])|pasa del|me mudé`,
  `mudei de ideia|em vez de|já não|não mais|correção|adiad[oa]|me mudei`,
  `van gedachten|in plaats (?:daar)?van|niet meer|niet langer|correctie|verplaatst|uitgesteld|verhuisd`,
)
const weakRetraction = words(
  `actually|(?<!(?:for|right|until|by|just) )now|new|updated?|as of`,
  `jetzt|nun|neue[rs]?|doch`,
  `maintenant|nouve(?:au|lle)|en fait|finalement`,
  `ahora|nuev[oa]|en realidad|al final`,
  `agora|nov[oa]|na verdade|afinal`,
  `nu|nieuwe?|eigenlijk|toch`,
)

/** Tells how clearly a sentence says that something is different now. */
export const findRetraction = (text: string): 'strong' | 'weak' | undefined =>
  strongRetraction.test(text) ? 'strong' : weakRetraction.test(text) ? 'weak' : undefined

const retracted =
  /(?:instead of|rather than|no longer|not any ?more|forget(?: about)?|switch\p{L}{0,4} from|moved? from|statt|anstatt|anstelle von|nicht mehr|au lieu d[eu']|à la place d[eu']|en vez de|en lugar de|ya no|em vez de|já não|in plaats van|niet meer) ([^.,;:!?]{2,60})|(?:^|[,;:] )([^.,;:!?]{2,40}) (?:doesn['’]t work|won['’]t work|fell through|is off|is cancell?ed|geht nicht|passt nicht|ne va pas|no me va|não dá|gaat niet)(?: any ?more| mehr| plus| meer)?/giu

/** Finds what a sentence says is no longer so: `Postgres` in "MySQL instead of Postgres". */
export const findRetracted = (text: string): readonly string[] =>
  Array.from(text.matchAll(retracted), ([, object, subject]) => object ?? subject ?? '')

const stopped =
  /\b(?:stopp?ed|quit|gave up)(?: (?:taking|using))?(?: (?:the|my|our))? ([\p{L}\p{N}-]{3,30})(?=[.,;!]|$)|\b(?:habe?|haben) ([\p{L}\p{N}-]{3,30}) abgesetzt/giu

/** Finds what somebody does no longer take or use: `aspirin` in "The doctor stopped the aspirin". */
export const findStopped = (text: string): readonly string[] =>
  Array.from(text.matchAll(stopped), ([, english, german]) => english ?? german ?? '')

const allShifted =
  /\b(?:shift|move|postpone|delay|push|reschedul)\p{L}{0,3} (?:everything|all (?:the )?dates|the (?:whole|entire) (?:trip|plan|schedule|thing))\b|\balles (?:um|auf) [^.,;!?]{2,40} verschieben|\btout (?:décaler|repousser)|\b(?:aplazarlo|retrasarlo) todo\b|\badiar tudo\b|\balles [^.,;!?]{2,40} (?:verschuiven|verplaatsen)/iu

/** True if a sentence says that all dates change. */
export const shiftsAll = (text: string): boolean => allShifted.test(text)

const absent =
  /(?:^|[,;:] |\b[Bb]ut )(\p{Lu}\p{Ll}+(?: \p{Lu}\p{Ll}+)?) (?:can['’]t(?: make it| come| do it)?|backed out|dropped out|kann (?:doch )?nicht(?: kommen)?|ne peut pas(?: venir)?|no puede(?: venir)?|kan niet(?: komen)?)(?=[.,;!]|$)/gu

/** Finds people who are not available, by name: `Ned` in "But Ned can't, he's in Norway". */
export const findAbsent = (text: string): readonly string[] =>
  Array.from(text.matchAll(absent), ([, name]) => name ?? '')

/** Greetings, interjections and conjunctions before the statement of a sentence. */
const lead =
  /^(?:(?:hi(?: there| again)?|hello(?: again)?|hey|(?:good )?(?:morning|evening|afternoon)|yes(?: please)?|yeah|yep|ok(?:ay)?|sure|oh(?: nice| no| wait)?|ah|well|right|fine|great|perfect|nice|cool|super|thanks|thank you|hm+|(?:quick )?update|oh and|by the way|btw|hallo|ja|ach (?:so|ja)|gut|also|danke|bonjour|oui|merci|hola|sí|gracias|olá|sim|obrigad[oa]|hoi|dank je)[,.!:…–-]+\s+|(?:and|but|so|also|und|aber|et|mais|y|pero|e|mas|en|maar)\s+){1,3}/iu

const trail =
  /(?:[,\s]+(?:(?:ha){1,4}h?|lol|;-?\)|:-?\)|xd|(?:and|so) i(?:['’]ve been|['’]m| am| was| got) (?:(?:appointed|elected|declared|volunteered|made|named)(?: as)? )?(?:the )?(?:chief|head|official|resident|designated) [\p{L} ]{3,30})[.!]*){1,2}$/iu

/** Length of laughter, smileys and playful titles after the statement of a sentence. */
export const measureTrail = (text: string): number => trail.exec(text.slice(-80))?.[0].length ?? 0

/** Length of the greetings, interjections and conjunctions before the statement of a sentence. */
export function measureLead(text: string): number {
  const length = lead.exec(text)?.[0].length ?? 0
  // "So far" and "Yes, I do" say little without their start.
  return text.length - length < 20 || /^(?:far|what|much|many)\b/i.test(text.slice(length)) ? 0 : length
}

/** Weekdays, months and relative dates in other languages than English. */
export const foreignDatePattern =
  /(?<![\p{L}\p{N}])(?:jan(?:uar|vier|eiro|uari)|feb(?:ruar|ruari)|février|febrero|fevereiro|märz|mars|marzo|março|maart|avril|abril|mai|mayo|maio|mei|jun[io]|juin|junho|juli|juillet|julio|julho|août|agosto|augustus|sept(?:iembre|embre|embro)|septembre|setembro|oktober|octobre|octubre|outubro|novembre|noviembre|novembro|dezember|décembre|diciembre|dezembro|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo|segunda|terça|quarta|quinta|sexta|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|heute|morgen|gestern|wochen?|monate?n?|jahre?n?|demain|hier|semaines?|mois|années?|ans|hoy|mañana|ayer|semanas?|mes(?:es)?|años?|hoje|amanhã|ontem|anos?|vandaag|gisteren|weken|maanden|jaar)(?![\p{L}\p{N}])/giu
export const foreignFirstPersonPattern = words(
  'ich|wir|mein\\p{L}{0,2}|unser\\p{L}{0,2}|je|j|nous|mon|ma|mes|notre|nos|yo|mi|mis|nuestr[oa]s?|tengo|tenemos|eu|meu|minha|nosso|nossa|ik|mijn|onze?',
)
