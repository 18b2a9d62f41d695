"""Definitions of a synthetic catalogue: the tools of server N are the same in every process and at every size."""

import json
import random

TOOLS_PER_SERVER = 100
VERBS = """add approve archive assign attach audit book build calculate cancel check clone close compare compress configure
convert copy count create deactivate delete deploy describe detect disable download draft duplicate edit enable encrypt
estimate evaluate execute export extract fetch filter find forecast format generate get grant group import index insert
inspect install invite join label launch link list lock log map measure merge migrate monitor move notify open optimize
parse pause pin plan preview print process publish pull push query queue read rebuild record refresh register reject
release remove rename render replace report request reset resize resolve restart restore resume retry revoke rotate run
save scale scan schedule search send set share sign sort split start stop submit subscribe summarize suspend sync tag
test track train transfer translate trigger unlock update upload validate verify watch""".split()
NOUNS = """account address agenda alarm alert amount answer app appointment article artifact asset attachment balance banner
batch bill board bookmark branch budget bug build calendar camera campaign card cart case category certificate channel
chart chat checklist cluster column comment commit company component conference connection contact container contract
coupon course credit customer dashboard database dataset deal deadline delivery deployment design device diagram
dictionary directory discount document domain draft driver email employee entity entry environment event exchange
expense experiment export feature feed field file filter flight folder font form forum function gallery gateway goal
graph group guide holiday host hotel image incident index inquiry instance insurance integration interview inventory
invoice issue item job journal key keyword label language layer lead lease lecture ledger letter level library license
link list loan location lock log machine mail map market measurement meeting member memory menu message metric
milestone mission model module monitor movie network news node note notebook notification object offer office order
organization outage package page palette panel parcel partner password patch patient payment payroll permission person
phone photo pipeline place plan playlist plugin point policy poll portfolio position post prescription presentation
price printer process product profile project promotion property proposal protocol provider purchase query question
queue quiz quota quote rating receipt recipe record recording refund region registry release reminder rental repository
request reservation resource response result review reward role room route row rule sample scenario schedule schema
score screen script season secret section segment sensor series server service session setting shift shipment shop
signal site skill slide slot snapshot song source spreadsheet sprint stack stage statement station status step stock
store story stream street student subject subscription subtitle summary supplier survey switch table tag target task
tax team template tenant term test text theme thread ticket timer timesheet token topic track trade training
transaction transcript translation trip truck tunnel tutorial unit update upload user vacancy variable vehicle vendor
version video view visit volume voucher wallet warehouse warranty weather webhook website widget window word workflow
workspace zone""".split()
QUALIFIERS = """active annual archived available backup batch blocked bulk cached central closed cloud confirmed custom daily
default deleted detailed digital draft duplicate empty encrypted expired external failed favorite featured final first
free full future global hidden hourly inactive internal invalid large last latest legacy linked local locked main manual
merged missing monthly nearby nested new next old open optional overdue paid partial past pending personal pinned
planned primary private public raw recent recurring remote required scheduled secondary secure shared signed single
stale static stored temporary trusted unread unused urgent valid verified visible weekly""".split()
SENTENCES = [
    "{Verb} the {adjective} {noun} of a {other} by its identifier, and return the {third} that belongs to it.",
    "{Verb} one {noun} with its {other} and {third}; use it when the user mentions a {adjective} {noun}.",
    "{Verb} a {adjective} {noun} in the current {other}. The result has the {third} and the time of the change.",
    "{Verb} every {noun} that matches a {other}, newest first, with pages of up to 100 {adjective} entries.",
]
TYPES = ["string", "string", "string", "integer", "boolean", "number"]
SYLLABLES = "ba be bo ca ce co da de di fa fi fo ga go ha he jo ka ki la le li lo ma me mi mo na ne no pa pe po ra re ri ro sa se si so ta te ti to va ve vi vo za ze zo".split()


def server_id(number):
    """A product name of its own for every server, such as `kamido00017`."""
    generator = random.Random(f"server {number}")
    return "".join(generator.choice(SYLLABLES) for _ in range(3)) + f"{number:05}"


def tools(number, count=TOOLS_PER_SERVER):
    """The definitions of a server, as JSON texts. About one tool in five shares its name with a tool of another server."""
    generator, names, definitions = random.Random(number), set(), []
    while len(definitions) < count:
        verb, adjective = generator.choice(VERBS), generator.choice(QUALIFIERS)
        noun, other, third = (generator.choice(NOUNS) for _ in range(3))
        name = f"{verb}_{adjective}_{noun}"
        if name in names:
            continue
        names.add(name)
        text = generator.choice(SENTENCES)
        text = text.format(Verb=verb.capitalize(), adjective=adjective, noun=noun, other=other, third=third)
        properties = {}
        for subject in [noun, other, third, *generator.sample(NOUNS, generator.randint(0, 2))]:
            kind = generator.choice(TYPES)
            field = {"type": kind, "description": f"The {generator.choice(QUALIFIERS)} {subject} to {verb}"}
            if kind == "integer":
                field |= {"minimum": 1, "maximum": 1000}
            properties[f"{subject}_{generator.choice(['id', 'name', 'count', 'filter'])}"] = field
        required = [next(iter(properties))]
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        annotations = {"readOnlyHint": verb in ("get", "list", "read", "search", "find"), "openWorldHint": False}
        definition = {"name": name, "description": text, "inputSchema": schema, "annotations": annotations}
        definitions.append(json.dumps(definition, separators=(",", ":")))
    return definitions


def arguments(definition):
    """Arguments that the schema of a tool accepts."""
    schema = json.loads(definition)["inputSchema"]
    values = {"string": "x", "integer": 1, "boolean": True, "number": 1.5}
    return {name: values[schema["properties"][name]["type"]] for name in schema["required"]}


def requests(count):
    """Requests as users word them, each about some tool of the first servers."""
    generator = random.Random("requests")
    patterns = ["{verb} the {adjective} {noun}", "I want to {verb} a {noun} of my {other}", "{verb} {noun} and {other}", "which {adjective} {noun} has a {other}?"]
    for _ in range(count):
        words = {"verb": generator.choice(VERBS), "adjective": generator.choice(QUALIFIERS), "noun": generator.choice(NOUNS), "other": generator.choice(NOUNS)}
        yield generator.choice(patterns).format(**words)
