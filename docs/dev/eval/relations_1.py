#!/usr/bin/env python3
"""Writes a set of questions by relation over a vault of people, companies, meetings, deals and projects.

Usage: relations_1.py FOLDER. The output is always the same. Beside the set it writes facts.tsv (each fact, how a note
states it, and in which), traps.tsv (what a note only seems to state) and questions-meta.tsv (what each question asks).
"""
import os, sys, re, json, random, itertools, collections
R = random.Random(20417)
if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit("usage: relations_1.py FOLDER")
OUT = sys.argv[1]
if os.path.exists(os.path.join(OUT, "notes")):
    sys.exit(f"{OUT} has notes already; name a new folder")
os.makedirs(OUT, exist_ok=True)

# ------------------------------------------------------------------ entities
VC = [("Northgate Capital", None, "venture capital", "London"), ("Tidewater Ventures", "Tidewater", "venture capital", "Lisbon"),
 ("Alder Partners", "Alder", "growth equity", "Berlin"), ("Blue Heron Capital", "Blue Heron", "venture capital", "Amsterdam"),
 ("Ridgeline Ventures", "Ridgeline", "venture capital", "Zurich"), ("Stonecrop Capital", "Stonecrop", "private equity", "Dublin"),
 ("Harbour Street Partners", "Harbour Street", "venture capital", "Edinburgh"), ("Cobalt Seed Fund", "Cobalt", "seed fund", "Stockholm")]
OPS = [("Northgate Systems", None, "building automation", "Leeds"), ("Halden Robotics", "Halden", "warehouse robots", "Oslo"),
 ("Marlow Health", None, "patient scheduling", "Bristol"), ("Marlowe Analytics", None, "retail analytics", "Dublin"),
 ("Brightwell Foods", "Brightwell", "meal kits", "Manchester"), ("Tessera Labs", "Tessera", "document search", "Berlin"),
 ("Tessel Software", "Tessel", "accounting software", "Ghent"), ("Kestrel Logistics", None, "parcel delivery", "Rotterdam"),
 ("Kestrel Aviation", None, "charter flights", "Geneva"), ("Ferrow Energy", "Ferrow", "battery storage", "Copenhagen"),
 ("Juniper Lane Studio", "Juniper Lane", "brand design", "Lisbon"), ("Oakhurst Insurance", "Oakhurst", "small business insurance", "Leeds"),
 ("Pellico", None, "recruiting software", "Milan"), ("Quayside Media", "Quayside", "local news", "Glasgow"),
 ("Sable Payments", "Sable", "card payments", "Amsterdam"), ("Sandpiper Travel", "Sandpiper", "business travel", "Lisbon"),
 ("Velora", None, "e-bikes", "Berlin"), ("Wickham Group", None, "industrial holdings", "Birmingham"),
 ("Arbor Data", None, "data warehousing", "Dublin"), ("Arbour Homes", None, "modular housing", "Bristol"),
 ("Copperfield Bank", "Copperfield", "business banking", "Edinburgh"), ("Dovetail Furniture", "Dovetail", "office furniture", "Leeds"),
 ("Everline Telecom", "Everline", "mobile networks", "Stockholm"), ("Fenwick & Rowe", None, "commercial law", "London"),
 ("Glasswing Security", "Glasswing", "cloud security", "Berlin"), ("Hollis Biotech", "Hollis", "lab diagnostics", "Cambridge"),
 ("Inkwell Publishing", "Inkwell", "textbooks", "Edinburgh"), ("Lanternworks", None, "event lighting", "Ghent"),
 ("Meridian Freight", None, "sea freight", "Rotterdam"), ("Meridian Schools", None, "private schools", "London"),
 ("Nimbus Grid", "Nimbus", "grid software", "Copenhagen"), ("Orchard Street Bakery", "Orchard Street", "wholesale bakery", "Manchester"),
 ("Parallel Motors", "Parallel", "electric vans", "Turin"), ("Redfern Holdings", "Redfern", "consumer brands holding", "Dublin"),
 ("Thistle Games", "Thistle", "mobile games", "Glasgow"), ("Umber Coffee", "Umber", "coffee roasting", "Bristol"),
 ("Vantage Rail", "Vantage", "rail maintenance", "Birmingham"), ("Westmoor Group", "Westmoor", "property and healthcare", "London"),
 ("Yarrow Clinics", "Yarrow", "physiotherapy clinics", "Manchester"), ("Zephyr Wind", "Zephyr", "wind farm services", "Hamburg"),
 ("Larkfield Dental", "Larkfield", "dental clinics", "Leeds"), ("Pinewood Signal", "Pinewood", "radio equipment", "Oslo")]
PAIRS = [("Anna","Berg","f"),("Anna","Bergman","f"),("Tom","Reyes","m"),("Tomas","Reyes","m"),("Maria","Santos","f"),("Marina","Santos","f"),
 ("Daniel","Okafor","m"),("Daniela","Okafor","f"),("James","Whitlock","m"),("Jamie","Whitlock","f"),("Sara","Lind","f"),("Sarah","Lindgren","f"),
 ("John","Carver","m"),("Jon","Carver","m"),("Peter","Haas","m"),("Petra","Haas","f")]
FF = "Ilse Priya Nadia Helen Chloe Ines Freya Grace Yuki Amara Lucia Elena Katya Rosa Beth Noor Sofie Tamsin Vera Wendy Zoe Hanna Leila Mei Orla Paula Ruth Stella Una Agnes Bianca Carla Dana Edith Fiona Greta Hilda".split()
MF = "Ravi Oskar Liam Marcus Felix Hugo Ivan Kofi Luca Mateo Nils Omar Pavel Rafael Simon Theo Umar Viktor Will Yusuf Adam Ben Callum Dmitri Emil Finn Gareth Hamid Ian Jonas Karim Lars Magnus Niall Otto Piotr Quentin".split()
LN = ("Brandt Menon Dufour Ellery Fontaine Garrity Holm Iversen Jansen Kowalski Larsson Moreau Novak Osei Pereira Quigley Rossi Sandhu Tanaka Ueda "
 "Vance Weber Xu Yilmaz Zeller Abbott Bianchi Castellano Doyle Eriksen Farrell Gupta Hassan Ibarra Joshi Keane Lombard Mbeki Nakamura Oduya Pratt Ramsay Sorensen Tully "
 "Unwin Visser Wolfe Yates Ziegler Achebe Bellamy Conti Drummond Esposito Falk Greer Hoang Ingram Jarvis Kaplan Lopez Madsen Nygaard Orme Pike Rahman Silva Thorne Ulrich "
 "Varga Winslow York Zamora Ashby").split()
PROJ = [("authbox","login and session library"),("authbox2","login and session library"),("ledgerkit","double-entry bookkeeping library"),
 ("sparrow-orm","small database mapper"),("quillmark","Markdown renderer"),("quill-legacy","Markdown renderer"),("fastgrid","data table widget"),
 ("Lumen UI","component library"),("courier-queue","job queue"),("postbag","job queue"),("metricsd","metrics collector"),("geotools-lite","set of map helpers"),
 ("nightly-etl","nightly export pipeline"),("shipyard-cli","deploy command line tool"),("tidepool","cache library")]

class N:  # note
    def __init__(s, t, title, folder):
        s.type, s.title, s.folder = t, title, folder
        s.id = {"person":"p","company":"c","meeting":"m","deal":"d","project":"s"}[t] + "-" + re.sub(r"[^a-z0-9]+","-",title.lower()).strip("-")
        s.alias=None; s.fm=[]; s.inline=[]; s.rels=[]; s.heads=[]; s.prose=[]; s.attr={}; s.traps=0; s.third=0
notes=[]
def mk(t,title,folder):
    n=N(t,title,folder); notes.append(n); return n
companies=[]
for i,(nm,al,ind,city) in enumerate(VC+OPS):
    n=mk("company",nm,"companies"); n.alias=al; n.attr=dict(ind=ind,city=city,vc=i<len(VC)); companies.append(n)
C={c.title:c for c in companies}; vcs=[c for c in companies if c.attr["vc"]]; ops=[c for c in companies if not c.attr["vc"]]
assert len(companies)==50
names=list(PAIRS); ln=LN[:]; R.shuffle(ln); ff=[(f,"f") for f in FF]+[(f,"m") for f in MF]
assert len(ff)>=74 and len(ln)>=74 , (len(ff),len(ln))
for (f,g),l in zip(ff[:74],ln[:74]): names.append((f,l,g))
R.shuffle(names)
people=[]
for f,l,g in names:
    n=mk("person",f"{f} {l}","people"); n.alias=f; n.attr=dict(g=g,first=f); people.append(n)
assert len(people)==90
projects=[]
for nm,d in PROJ:
    n=mk("project",nm,"projects"); n.attr=dict(desc=d); projects.append(n)
P={p.title:p for p in projects}

# ------------------------------------------------------------------ facts
facts=[]; fset=set()
def add(rel,s,o,home=None,note=None):
    k=(rel,s.id,o.id)
    if k in fset: return None
    fset.add(k); f=dict(rel=rel,s=s,o=o,home=home,note=note,form=None); facts.append(f); return f
def has(rel,s,o): return (rel,s.id,o.id) in fset

# works_at + roles
TOP=["CEO","managing director","chief operating officer","CEO","managing director"]
MID=["head of operations","head of product","head of engineering","finance director","head of sales","VP marketing"]
LOW=["software engineer","data analyst","product designer","account manager","software engineer","project manager","customer success manager","data engineer","procurement manager"]
order=ops[:]; R.shuffle(order)
cnt={c:1 for c in companies}
big=[c for c in order if c.title not in("Orchard Street Bakery","Larkfield Dental","Lanternworks")]
for c in big[:8]: cnt[c]+=3
for c in big[8:22]+vcs[:2]: cnt[c]+=1
pp=iter(people); staff={}
for k in range(4):
    for c in companies:
        if cnt[c]>k:
            p=next(pp); staff.setdefault(c,[]).append(p); p.attr["co"]=c
            if c.attr["vc"]: p.attr["role"]=["partner","associate"][k] if k<2 else "analyst"
            else: p.attr["role"]=R.choice(TOP) if k==0 else R.choice(MID) if k==1 else R.choice(LOW)
for c in companies:   # duplicated low roles are fine
    for p in staff[c]: add("works_at",p,c)
# reports_to
rep=[]
for c in companies:
    st=staff[c]
    if len(st)>1: rep.append((st[1],st[0]))
    if len(st)>2: rep+= [(q,R.choice(st[:2])) for q in st[2:]]
R.shuffle(rep)
rep=rep[:34]
for a,b in rep: add("reports_to",a,b)
# founded
fo=[c for c in companies if c.title not in("Wickham Group","Redfern Holdings","Westmoor Group","Copperfield Bank","Everline Telecom","Fenwick & Rowe")]
R.shuffle(fo)
for c in fo[:14]:
    p=staff[c][0]; add("founded",p,c); p.attr["founder_here"]=True
    if not c.attr["vc"]: p.attr["role"]="CEO"
mids=[p for p in people if not p.attr.get("founder_here")]; R.shuffle(mids)
mi=iter(mids)
for c in fo[9:14]+fo[14:24]:
    p=next(mi)
    while p.attr["co"] is c: p=next(mi)
    add("founded",p,c); add("worked_at",p,c); p.attr["exf"]=c
# worked_at
rest=[p for p in people if not p.attr.get("founder_here") and not p.attr.get("exf")]; R.shuffle(rest)
wc=collections.Counter(f["o"] for f in facts if f["rel"]=="worked_at")
for i,p in enumerate(rest[:26]):
    pool=[c for c in companies if c is not p.attr["co"] and wc[c]<4]
    pref=[c for c in pool if 0<wc[c]<3]
    c=R.choice(pref if i%2 and pref else pool); wc[c]+=1; add("worked_at",p,c)
# parent
SUB={"Wickham Group":["Vantage Rail","Dovetail Furniture","Northgate Systems"],"Redfern Holdings":["Umber Coffee","Brightwell Foods","Orchard Street Bakery"],
 "Westmoor Group":["Yarrow Clinics","Larkfield Dental","Arbour Homes"],"Copperfield Bank":["Oakhurst Insurance"],"Everline Telecom":["Quayside Media","Pinewood Signal"]}
for a,bs in SUB.items():
    for b in bs: add("parent_company",C[b],C[a])
# acquired
ACQ=[("Sable Payments","Tessel Software"),("Sable Payments","Pellico"),("Halden Robotics","Lanternworks"),("Marlow Health","Hollis Biotech"),("Meridian Freight","Kestrel Logistics"),
 ("Glasswing Security","Tessera Labs"),("Inkwell Publishing","Meridian Schools"),("Inkwell Publishing","Thistle Games"),("Arbor Data","Marlowe Analytics"),
 ("Parallel Motors","Velora"),("Ferrow Energy","Zephyr Wind"),("Ferrow Energy","Nimbus Grid"),("Stonecrop Capital","Sandpiper Travel"),("Stonecrop Capital","Juniper Lane Studio")]
ACQDEAL={1,4,8,11}
for i,(a,b) in enumerate(ACQ): add("acquired",C[a],C[b])
# invested
tg=[c for c in ops if c.title not in("Wickham Group","Redfern Holdings","Westmoor Group","Copperfield Bank","Everline Telecom","Fenwick & Rowe") and not any(c.title in b for b in SUB.values())]
R.shuffle(tg)
deal_inv=tg[:8]; ic=collections.Counter()
angels=[p for p in people if p.attr["role"] in("CEO","managing director","finance director","chief operating officer")]; R.shuffle(angels)
angels=angels[:6]; ai=0
for j,c in enumerate(tg[:22]):
    k=[2,1,2,2,1,3][j%6]
    bad={b for a,b in ACQ if a=="Stonecrop Capital"}
    pool=[v for v in vcs if ic[v]<5 and not(v.title=="Stonecrop Capital" and c.title in bad)]; R.shuffle(pool)
    for v in pool[:k]:
        ic[v]+=1; add("invested_in",v,c)
    if j%3==2:
        p=angels[ai%6]; ai+=1
        if p.attr["co"] is not c and p.attr.get("exf") is not c: add("invested_in",p,c)
# projects
DEP=[("nightly-etl","courier-queue"),("nightly-etl","sparrow-orm"),("nightly-etl","metricsd"),("shipyard-cli","authbox2"),("shipyard-cli","metricsd"),("Lumen UI","quillmark"),
 ("sparrow-orm","tidepool"),("courier-queue","tidepool"),("authbox2","tidepool"),("authbox2","sparrow-orm"),("geotools-lite","tidepool"),("fastgrid","quill-legacy"),("postbag","ledgerkit"),
 ("courier-queue","metricsd"),("Lumen UI","geotools-lite"),("authbox","ledgerkit"),("quillmark","tidepool"),("shipyard-cli","courier-queue"),("fastgrid","authbox")]
for a,b in DEP: add("depends_on",P[a],P[b])
for a,b in [("authbox2","authbox"),("quillmark","quill-legacy"),("Lumen UI","fastgrid"),("courier-queue","postbag"),("sparrow-orm","ledgerkit")]: add("supersedes",P[a],P[b])
eng=[p for p in people if p.attr["role"] in("software engineer","data engineer","head of engineering","data analyst","product designer")]; R.shuffle(eng)
eng=eng[:11]
mt=[]
for i,p in enumerate(projects):
    mt.append((eng[i%11],p))
    if i%3==0: mt.append((eng[(i*2+5)%11],p))
for a,b in mt: add("maintains",a,b)
# meetings
pool=people[:]; R.shuffle(pool)
metpool=pool[:24]; attpool=pool[24:]
KIND=["kickoff","quarterly review","product demo","contract review","planning workshop","board meeting","pricing call","site visit","annual review","onboarding call"]
subj=[(c,None) for c in ops]; R.shuffle(subj); subj=subj[:36]+[(p,None) for p in projects[:10]]
extra=[s for s in ops]; R.shuffle(extra); subj+= [(c,None) for c in extra[:6]]
PK=["migration planning","roadmap session","release retro","design review"]
MON="January February March April May June July August September October November December".split()
meetings=[]; seen=set(); ac=collections.Counter()
for i,(sj,_) in enumerate(subj):
    kinds=PK if sj.type=="project" else KIND
    k=kinds[i%len(kinds)]
    while (sj,k) in seen: k=R.choice(kinds)
    seen.add((sj,k))
    d=f"{2023+i%3}-{R.randint(1,12 if i%3<2 else 6):02d}-{R.randint(1,28):02d}"
    n=mk("meeting",f"{d} {sj.title.replace('&','and')} {k}","meetings"); n.attr=dict(subj=sj,kind=k,date=d,one=False); n.alias=f"{sj.title} {k}"
    own=[p for p in attpool if p.attr["co"] is sj and ac[p]<5]
    if sj.type=="project": own=[p for a,b in mt if b is sj for p in [a] if p in attpool and ac[p]<5]
    want=[3,2,4,3,2,3][i%6]; att=own[:2]
    oth=[p for p in attpool if p not in att and ac[p]<4]; R.shuffle(oth)
    att+=oth[:want-len(att)]
    for p in dict.fromkeys(att): ac[p]+=1; add("attended",p,n)
    meetings.append(n)
# met_with
allp=list(itertools.combinations(metpool,2)); R.shuffle(allp); mc=collections.Counter(); met=[]
for a,b in allp:
    if len(met)<32 and mc[a]<4 and mc[b]<4 and a.attr["co"] is not b.attr["co"]:
        mc[a]+=1; mc[b]+=1; met.append((a,b)); add("met_with",a,b)
ONE=["Coffee","Lunch","Call","Breakfast","Coffee","Call","Lunch","Drinks"]
onemet=met[3::4][:8]
for i,(a,b) in enumerate(onemet):
    d=f"{2023+i%3}-{R.randint(1,6):02d}-{R.randint(1,28):02d}"
    n=mk("meeting",f"{d} {ONE[i]} with {b.title}","meetings"); n.attr=dict(subj=b,kind=ONE[i].lower(),date=d,one=True); meetings.append(n)
    f=next(f for f in facts if f["rel"]=="met_with" and f["s"] is a and f["o"] is b); f["home"],f["note"]="t",n
    add("attended",a,n,"o",n); add("attended",b,n,"o",n)
# deals
deals=[]
def mkdeal(t,**a):
    n=mk("deal",t,"deals"); n.attr=a; deals.append(n); return n
for i,c in enumerate(deal_inv):
    st=["Series A","seed round","Series B"][i%3]
    n=mkdeal(f"{c.title} {st}",kind="round",status="closed",co=c)
    for f in facts:
        if f["rel"]=="invested_in" and f["o"] is c: f["home"],f["note"]="t",n
for i in sorted(ACQDEAL):
    a,b=ACQ[i]; n=mkdeal(f"{b} sale",kind="sale",status="closed",co=C[b])
    f=next(f for f in facts if f["rel"]=="acquired" and f["s"] is C[a] and f["o"] is C[b]); f["home"],f["note"]="t",n
traps=[]
def trap(rel,s,o,note,text,where="prose"):
    traps.append((rel,s,o,note,text)); note.traps+=1
    if where=="prose": note.prose.append(text)
    elif where=="bullet": note.attr.setdefault("tb",[]).append(text)
def LK(n,pr=.3):
    if n.alias and R.random()<pr and n.type in("company","person"): return f"[[{n.title}|{n.alias}]]"
    if n.type=="meeting" and n.alias and R.random()<.5: return ("the " if pr>=.3 else "")+f"[[{n.title}|{n.alias}]]"
    return f"[[{n.title}]]"
FELL=[("Parallel Motors","Kestrel Logistics"),("Arbor Data","Glasswing Security"),("Sable Payments","Copperfield Bank"),("Marlow Health","Yarrow Clinics"),("Halden Robotics","Northgate Systems"),("Inkwell Publishing","Quayside Media"),("Redfern Holdings","Hollis Biotech")]
FT=["{s} wanted to buy {o}, but the talks broke down over price and nothing was signed.","{s} made an offer for {o} and the board turned it down.","The plan was for {s} to acquire {o}. It fell through in due diligence.",
 "{s} was in talks to acquire {o} but walked away.","{s} decided not to buy {o} in the end.","{s} looked at acquiring {o} for most of the spring, then dropped it.","{s} bid for {o} and lost. No deal."]
for i,(a,b) in enumerate(FELL):
    n=mkdeal(f"{a} - {b}",kind="fell",status=R.choice(["lost","dead","cancelled"]),co=C[b],other=C[a])
    trap("acquired",C[a],C[b],n,FT[i].format(s=LK(C[a]),o=LK(C[b])))
PT=["{s} looked at the round in {o} and passed.","{s} did not invest in {o}, too early for them.","{s} was going to join the {o} round but pulled out a week before signing.","{s} considered investing in {o}; the partners said no.","{s} has seen the deck for {o} but has not committed.","{s} wanted to lead the {o} round, but terms could not be agreed and they withdrew."]
lone=[c for c in tg if c not in deal_inv][:6]
for i,c in enumerate(lone):
    v=[v for v in vcs if not has("invested_in",v,c) and not has("acquired",v,c)][i%3]
    n=mkdeal(f"{c.title} bridge round",kind="pass",status="passed" if i!=4 else "on hold",co=c,other=v)
    trap("invested_in",v,c,n,PT[i].format(s=LK(v),o=LK(c)))
assert len(deals)==25,len(deals); assert len(meetings)==60,len(meetings); assert len(notes)==240

# ------------------------------------------------------------------ homes
MAIN=dict(works_at="s",worked_at="s",founded="s",invested_in="o",acquired="s",attended="o",met_with="s",depends_on="s",supersedes="s",maintains="o",reports_to="s",parent_company="s")
nbr=collections.defaultdict(list)
for f in facts:
    nbr[f["s"].id].append(f["o"]); nbr[f["o"].id].append(f["s"])
for m in meetings: nbr[m.attr["subj"].id].append(m)
for d in deals:
    nbr[d.attr["co"].id].append(d)
    if d.attr.get("other"): nbr[d.attr["other"].id].append(d)
def obj_(r,x): return [f["o"] for f in facts if f["rel"]==r and f["s"] is x]
def third(f):
    ok=[n for n in nbr[f["s"].id]+nbr[f["o"].id] if n is not f["s"] and n is not f["o"] and n.third<3]
    if f["rel"]=="met_with": ok=[n for n in ok if n.type=="person"] 
    if f["rel"] in("depends_on","supersedes"): ok=[n for n in meetings if n.attr["subj"].type=="project" and n.third<3]
    if not ok:
        ok=[n for n in notes if n.third<2 and n.type in("meeting","person") and n not in (f["s"],f["o"])]
    pri={"meeting":0,"deal":0,"person":1,"company":1,"project":2}
    if f["rel"]=="attended":
        ok=[n for n in ok if n.type in("company","person","deal","project")] or [n for n in companies if n.third<3]
        pri={"meeting":5,"deal":0,"person":0,"company":0,"project":0}
    if f["rel"]=="works_at":
        att=[m for m in obj_("attended",f["s"]) if m in ok and m.third<3]
        if att: ok=att
    lo=min(n.third*2+pri[n.type] for n in ok)
    n=R.choice([n for n in ok if n.third*2+pri[n.type]==lo]); n.third+=1; return n
byrel=collections.defaultdict(list)
for f in facts: byrel[f["rel"]].append(f)
for rel,fs in byrel.items():
    n=len(fs); free=[f for f in fs if not f["home"]]; pre=collections.Counter(f["home"] for f in fs if f["home"])
    other="o" if MAIN[rel]=="s" else "s"
    want={"t":max(0,round(n*.25)-pre["t"]),other:max(0,round(n*.25)-pre[other])}
    if rel=="invested_in": free.sort(key=lambda f:f["o"].id)
    R.shuffle(free)
    for f in free:
        if want["t"]>0: f["home"]="t"; want["t"]-=1; f["note"]=third(f)
        elif want[other]>0: f["home"]=other; want[other]-=1; f["note"]=f["s"] if other=="s" else f["o"]
        else: f["home"]=MAIN[rel]; f["note"]=f["s"] if MAIN[rel]=="s" else f["o"]

# ------------------------------------------------------------------ wording
W={ # fm keys, inline keys, relation names, heading names, prose ; s-side and o-side ; t prose
"works_at":dict(s=(["company","company","employer","works_at","organization"],["Company","Works at","Employer"],["works_at","works_at","employed_by"],["Company","Works at","Current job"],
   ["{N} works at {o} as {role}.","{N} is {role} at {o}.","{He} works for {o} as {role}.","{N} is currently {role} at {o}.","{N} joined {o} in {y2} as {role}."]),
  o=(["employees","people","team"],["Employees","Team","People"],["employs","employs"],["People","Team","Employees"],["{s} <works/work> here.","We mostly deal with {s}, who <works/work> there.","{s} <is/are> on the team here.","{s} joined the company in {y2}."]),
  t=["{s} works at {o} as {role}.","{s} is {role} at {o}.","{s} from {o} asked for the numbers before the next call.","{s}, {role} at {o}, will send the contact list.","{s} works for {o}.","{s} is now at {o}."],th="{s}, {role} at {o}"),
"worked_at":dict(s=(["previous_company","previously","former_employer","worked_at"],["Previously","Previous company","Formerly"],["worked_at","previously_at","formerly_at"],["Previous jobs","Previously","Past companies"],
   ["Before that {he} worked at {o}.","{N} used to work at {o}.","{He} was at {o} until {y1}.","{N} left {o} in {y1}.","{He} spent a few years at {o} before this job.","Previously at {o}."]),
  o=(["alumni","former_employees"],["Alumni","Former employees"],["formerly_employed","former_employee"],["Alumni","Former employees"],["{s} used to work here.","{s} left in {y1}.","{s} worked here until {y1}.","{s} <is an ex-employee/are ex-employees>."]),
  t=["{s} used to work at {o}.","{s} worked at {o} until {y1}, so knows how they operate.","{s} was at {o} before the current job.","{s} left {o} in {y1}."],th="{s}, formerly at {o}"),
"founded":dict(s=(["founded","founder_of"],["Founded","Founder of"],["founded","founder_of"],["Founded","Companies founded"],
   ["{N} founded {o} in {y0}.","{He} started {o} in {y0}.","{N} is the founder of {o}.","{He} co-founded {o} after university."]),
  o=(["founder+","founders","founded_by"],["Founder+","Founded by","Founders"],["founded_by"],["Founders"],["Founded in {y0} by {s}.","{s} founded the company in {y0}.","{s} started the company in {y0}.","The company was founded by {s}."]),
  t=["{s} founded {o} in {y0}.","{o} was founded by {s}.","{s} is the founder of {o}.","{s} started {o} back in {y0}."],th="{s}, founder of {o}"),
"invested_in":dict(s=(["portfolio","investments","invested_in"],["Portfolio","Investments","Invested in"],["invested_in","investor_in"],["Portfolio","Investments"],
   ["Invested in {o}.","They invested in {o}.","Has a stake in {o}.","They put money into {o} in {y1}."]),
  o=(["investors","investors","backers"],["Investors","Backed by"],["funded_by","backed_by","has_investor"],["Investors","Cap table"],["Investors include {s}.","{s} invested in {y1}.","Backed by {s}.","Raised money from {s}.","{s} <is an investor/are investors>."]),
  t=["{s} invested in {o}.","{s} is an investor in {o}.","{o} is backed by {s}.","{o} raised money from {s} in {y1}."],th="{s}, investor in {o}"),
"acquired":dict(s=(["acquired","acquisitions"],["Acquired","Acquisitions"],["acquired"],["Acquisitions"],["They acquired {o} in {y1}.","Bought {o} in {y1}.","They bought {o}.","The company took over {o} in {y1}."]),
  o=(["acquired_by"],["Acquired by"],["acquired_by"],["Acquired by"],["Acquired by {s} in {y1}.","{s} bought the company in {y1}.","The company was sold to {s}."]),
  t=["{s} acquired {o} in {y1}.","{s} bought {o} in {y1}.","{o} was acquired by {s}.","{o} was bought by {s} in {y1}."],th="{s} acquired {o}"),
"attended":dict(s=(["meetings","attended"],["Attended","Meetings"],["attended"],["Meetings","Meetings attended"],["{N} attended {o}.","{He} was at {o}.","{N} joined us for {o}.","Last saw {him} at {o}.","{N} came to {o}."]),
  o=(["attendees","attendees","participants","people"],["Attendees","Participants","Present"],["attended_by","has_attendee"],["Attendees","Participants","Present"],["In the room: {s}.","{s} attended.","Present: {s}.","{s} joined the meeting.","{s} <was/were> there."]),
  t=["{s} attended {o}.","{s} was at {o}.","{s} joined {o}.","{s} came to {o} as well."],th="{s} attended {o}"),
"met_with":dict(s=(["met_with"],["Met with"],["met_with"],["Met with"],["{N} met with {o} in {mon}.","{He} met {o} for coffee in {mon}.","{N} had lunch with {o} in {place}.","{N} met up with {o} in {place} to talk about {topic}.","{He} had a call with {o} in {mon}."]),
  o=(["met_with"],["Met with"],["met_with"],["Met with"],["{s} met with {him} in {mon}.","{s} had coffee with {N} in {mon}.","{N} met with {s} in {place}.","{s} had lunch with {him} in {mon}."]),
  t=["{s} met with {o} about {topic}.","{s} met {o} in {place}.","{s} and {o} had lunch in {mon} and talked about {topic}.","{s} had a call with {o} to talk about {topic}."],th="{s} met with {o} in {mon}"),
"depends_on":dict(s=(["depends_on","dependencies","requires"],["Depends on","Dependencies"],["depends_on","uses","requires"],["Dependencies","Depends on"],["Depends on {o}.","It uses {o}.","Built on top of {o}.","It needs {o} to run.","Relies on {o}."]),
  o=(["used_by","dependents"],["Used by"],["used_by","required_by"],["Used by","Dependents"],["Used by {s}.","{s} <depends/depend> on it.","{s} <uses/use> it."]),
  t=["{s} depends on {o}.","{s} uses {o}.","{s} is built on {o}.","{s} still needs {o}, so upgrade them together."],th="{s} depends on {o}"),
"supersedes":dict(s=(["replaces","supersedes"],["Replaces","Supersedes"],["supersedes","replaces"],["Replaces"],["Replaces {o}.","This is the replacement for {o}.","It supersedes {o}."]),
  o=(["superseded_by","replaced_by"],["Superseded by","Replaced by"],["superseded_by","replaced_by"],["Replaced by"],["Replaced by {s}.","Superseded by {s}, do not use for new work.","Deprecated in favour of {s}."]),
  t=["{s} replaced {o} this year.","{s} replaces {o}.","{o} has been superseded by {s}.","{o} was replaced by {s}."],th="{s} replaces {o}"),
"maintains":dict(s=(["maintains","maintainer_of"],["Maintains"],["maintains","maintainer_of"],["Maintains","Projects"],["{N} maintains {o}.","{He} is the maintainer of {o}.","{N} looks after {o} in {his} spare time.","{He} also maintains {o}."]),
  o=(["maintainer+","maintainers","maintained_by"],["Maintainer+","Maintained by"],["maintained_by"],["Maintainers"],["Maintained by {s}.","{s} <maintains/maintain> it.","{s} <looks/look> after it."]),
  t=["{s} maintains {o}.","{s} is the maintainer of {o}.","{o} is maintained by {s}.","{s} looks after {o}, so ask there about releases."],th="{s}, maintainer of {o}"),
"reports_to":dict(s=(["manager","reports_to","boss"],["Reports to","Manager"],["reports_to","managed_by"],["Reports to","Manager"],["{N} reports to {o}.","{His} manager is {o}.","{His} boss is {o}.","{He} reports to {o}."]),
  o=(["direct_reports","reports"],["Direct reports","Manages"],["manages","has_report"],["Direct reports","Reports"],["{s} <reports/report> to {him}.","{N} manages {s}.","{N} is the manager of {s}.","{N} is in charge of a small team, with {s} reporting to {him}."]),
  t=["{s} reports to {o}.","{o} manages {s}.","{o} is the manager of {s}.","{o} is {s}'s boss."],th="{s} reports to {o}"),
"parent_company":dict(s=(["parent","parent_company"],["Parent company","Parent"],["subsidiary_of","part_of","owned_by"],["Parent company"],["It is a subsidiary of {o}.","Part of {o}.","Owned by {o}.","The parent company is {o}."]),
  o=(["subsidiaries"],["Subsidiaries"],["parent_of","owns"],["Subsidiaries","Group companies"],["The group owns {s}.","{s} <is a subsidiary/are subsidiaries>.","Parent company of {s}."]),
  t=["{s} is a subsidiary of {o}.","{s} is part of {o}.","{o} is the parent company of {s}.","{s} belongs to {o}."],th="{s}, part of {o}"),
}
TOPIC=["hiring","pricing","the new website","next year's budget","the Spanish market","supplier contracts","data protection","a possible partnership","the reorganisation","office space","training","the trade fair"]
PLACE=["Lisbon","Berlin","Leeds","Amsterdam","Dublin","Oslo","the airport","London","Bristol","Copenhagen"]
def fill(t,n,s="",o="",role="",plural=False):
    g=n.attr.get("g","m"); 
    d=dict(s=s,o=o,role=role,N=n.attr.get("first",n.title),He="She" if g=="f" else "He",he="she" if g=="f" else "he",His="Her" if g=="f" else "His",his="her" if g=="f" else "his",him="her" if g=="f" else "him",
      y0=R.randint(2009,2016),y1=R.randint(2018,2020),y2=R.randint(2021,2024),mon=R.choice(MON),place=R.choice(PLACE),topic=R.choice(TOPIC),ind=n.attr.get("ind",""),city=n.attr.get("city",""),desc=n.attr.get("desc",""))
    t=t.format(**d); t=re.sub(r"<([^/<>]*)/([^<>]*)>",lambda m:m.group(2 if plural else 1),t); return t[0].upper()+t[1:]
def art(role):
    return role if re.match(r"(CEO|managing|chief|head|finance director|VP)",role) else "a"+("n" if role[0] in "aeiou" else "")+" "+role
def join(xs): return xs[0] if len(xs)==1 else ", ".join(xs[:-1])+" and "+xs[-1]
STY=["frontmatter","relations","prose","inline","frontmatter","heading","prose","frontmatter","relations","inline","heading"]
si=collections.Counter()
for n in notes: n.style=STY[si[n.type]%len(STY)]; si[n.type]+=1
use=collections.Counter()
def least(opts,key):
    lo=min(use[(key,x)] for x in opts); x=R.choice([x for x in opts if use[(key,x)]==lo]); use[(key,x)]+=1; return x
groups=collections.OrderedDict()
for f in facts: groups.setdefault((f["note"].id,f["rel"],f["home"]),[]).append(f)
for (nid,rel,home),fs in sorted(groups.items(),key=lambda g:g[0][1]=="works_at" and g[0][2]=="t"):
    n=fs[0]["note"]; w=W[rel]
    if home in "so":
        ends=[f["o"] if home=="s" else f["s"] for f in fs]; pl=len(ends)>1
        form=n.style if R.random()<.8 else "prose"
        if rel=="attended" and home=="o":
            if form=="prose" and R.random()<.6: form=R.choice(["heading","heading","frontmatter"])
        if n.type=="meeting" and n.attr["one"]: form="prose"
        if rel=="met_with" and form=="frontmatter" and R.random()<.5: form="prose"
        fmk,ink,rlk,hdk,prs=w[home]
        if rel=="works_at" and home=="s" and n.attr.get("founder_here"): prs=[p for p in prs if "joined" not in p]
        if rel=="worked_at" and home=="s" and (nid,"works_at","s") not in groups: prs=[p for p in prs if "Before that" not in p and "this job" not in p]
        if rel in("works_at",) and home=="o" and any(e.attr.get("founder_here") for e in ends): prs=prs[:3]
        if rel=="invested_in" and n.type=="person": prs=["{N} invested in {o}.","{He} is an angel investor in {o}.","{N} put some money into {o} in {y1}."]
        pk=lambda ks:[k.rstrip("+") for k in ks if not(pl and k.endswith("+"))]
        if form=="frontmatter": n.fm.append((least(pk(fmk),rel+home),[f"[[{e.title}]]" for e in ends]))
        elif form=="inline": n.inline.append((least(pk(ink),rel+home),[LK(e,.2) for e in ends]))
        elif form=="relations":
            k=least(rlk,rel+home)
            for e in ends: n.rels.append(f"- {k} {LK(e,0)if e.type!='meeting' else '[['+e.title+']]'}")
        elif form=="heading":
            ls=[]
            for e in ends:
                t=f"- {LK(e,.2)}"
                if rel in("works_at",) : t+=R.choice([" - "+(e if home=="o" else n).attr["role"],""])
                ls.append(t)
            n.heads.append((least(hdk,rel+home),ls))
        else:
            if n.type=="meeting" and n.attr["one"]:
                n.attr["att"]=fs; 
            else:
                n.prose.append(fill(least(prs,rel+home),n,s=join([LK(e) for e in ends]),o=join([LK(e) for e in ends]),role=art(n.attr.get("role","")) if n.type=="person" else "",plural=pl))
        for f in fs: f["form"]=form
    else:
        if n.type=="deal" and rel in("invested_in","acquired") and n.attr["status"]=="closed" and all(f["o"] is n.attr["co"] for f in fs):
            if n.style!="prose":
                if rel=="invested_in": n.fm+= [("company",[f"[[{n.attr['co'].title}]]"]),("investors" if len(fs)>1 else R.choice(["investor","investors"]),[f"[[{f['s'].title}]]" for f in fs])]
                else: n.fm+= [("acquirer" if R.random()<.6 else "buyer",[f"[[{fs[0]['s'].title}]]"]),("target",[f"[[{n.attr['co'].title}]]"])]
                form="frontmatter"
            else:
                t={"invested_in":["{s} invested in {o}, papers signed in {mon}.","The round in {o} was funded by {s}."],"acquired":["{s} acquired {o}, signed in {mon}.","{s} bought {o}."]}[rel]
                n.prose.append(fill(least(t,rel+"deal"),n,s=join([LK(f["s"]) for f in fs]),o=LK(n.attr["co"]))); form="prose"
            for f in fs: f["form"]=form
            continue
        for f in fs:
            role=art(f["s"].attr["role"]) if f["s"].type=="person" else ""
            if n.type=="meeting" and n.attr["one"] and rel=="met_with":
                pass
            if rel=="works_at" and n.type=="meeting":
                hit=None
                for h,ls in n.heads:
                    for k_,l in enumerate(ls):
                        if l.startswith(f"- [[{f['s'].title}") and "(" not in l and h in("Attendees","Participants","Present"): hit=(ls,k_)
                if hit: hit[0][hit[1]]+=f" ([[{f['o'].title}]])"; f["form"]="heading"; continue
            if n.style=="heading" and not(n.type=="meeting" and n.attr["one"]):
                h=n.attr.setdefault("bgname",R.choice(["Background","Context","Related"]))
                ex=next((x for x in n.heads if x[0]==h),None)
                if not ex: ex=(h,[]); n.heads.append(ex)
                ex[1].append("- "+fill(w["th"],n,s=f"[[{f['s'].title}]]",o=LK(f["o"],.2),role=role.replace("a ","",1) if role.startswith("a ") else role)); f["form"]="heading"
            else:
                ts=w["t"]
                if rel=="works_at" and not(n.type=="meeting" and has("attended",f["s"],n)): ts=[t for t in ts if "asked for" not in t and "will send" not in t]
                if rel=="works_at" and f["s"].attr.get("founder_here"): ts=[t for t in ts if "now at" not in t]
                n.prose.append(fill(least(ts,rel+"t"),n,s=LK(f["s"],.1),o=LK(f["o"]),role=role)); f["form"]="prose"

# ------------------------------------------------------------------ traps in notes
def anyof(xs,cond):
    xs=[x for x in xs if cond(x)]; R.shuffle(xs); return xs
def linked(rel,s,o):  # any related claim that would make the trap confusing
    same={"works_at":("works_at","worked_at","founded"),"worked_at":("works_at","worked_at","founded")}.get(rel,(rel,))
    return any(has(r,s,o) or has(r,o,s) for r in same)
T=[("works_at","s",["{N} turned down an offer from {o}.","{N} interviewed at {o} last year but did not get the job.","{N} was going to join {o}, but it fell through and {he} stayed where {he} is.","{N} does not work at {o}, the business card is an old mix-up.","{He} almost joined {o} in {y2}."],people,companies,14),
 ("works_at","o",["{s} was offered a job here and said no.","{s} recommended them to us.","{s} does not work here, only helped with the tender.","{s} was supposed to start here in {mon} but changed plans."],people,companies,9),
 ("founded","s",["{N} advised {o} early on but is not a founder.","{N} thought about starting a company with the people behind {o}, but it came to nothing."],people,ops,4),
 ("invested_in","o",["{s} looked at the last round but did not invest.","{s} passed on the round.","{s} has been mentioned as a possible investor, nothing decided."],vcs,tg,7),
 ("invested_in","s",["They passed on {o}.","They looked at {o} twice and did not invest."],vcs,tg,4),
 ("acquired","s",["They considered buying {o} but decided against it.","There was a rumour they would buy {o}. Not true."],[C[a] for a,_ in ACQ],ops,5),
 ("attended","o",["{s} could not make it.","Apologies from {s}.","{s} was invited but did not come.","{s} was mentioned but was not there.","Send the notes to {s}, who missed this one."],people,[m for m in meetings if not m.attr["one"]],22),
 ("attended","s",["{N} missed {o} because of a delayed train.","{N} was invited to {o} but could not come."],attpool,[m for m in meetings if not m.attr["one"]],5),
 ("met_with","s",["{N} was supposed to meet {o} in {place} but it was cancelled.","{N} has not met {o} yet, but they should talk.","{N} wants to meet {o} sometime this year."],metpool,metpool,8),
 ("depends_on","s",["No longer depends on {o}.","The authors looked at {o} and decided not to use it.","Does not need {o} any more since the last release."],projects,[P[x] for x in("tidepool","metricsd","ledgerkit","authbox","courier-queue","postbag","quill-legacy")],6),
 ("supersedes","s",["Not a replacement for {o}, they do different things."],[P[x] for x in("shipyard-cli","geotools-lite","metricsd")],[P[x] for x in("nightly-etl","fastgrid","tidepool","ledgerkit")],2),
 ("maintains","o",["{s} sent a patch once but does not maintain it.","{s} reported most of the bugs.","{s} used to maintain it and stepped down in {y1}.","{s} offered to take it over, but that did not happen."],people,projects,7),
 ("reports_to","s",["{N} does not report to {o}, though they share an office.","{N} used to report to {o}, before the reorganisation.","{N} was meant to move to {o}'s team, but it was called off."],people,people,8),
 ("parent_company","s",["Often confused with {o}, but the two are not related.","Not part of {o}, only a customer.","Plans to become part of {o} were dropped."],ops,companies,5)]
for rel,side,ts,ss,os_,k in T:
    tries=0
    while k and tries<3000:
        tries+=1; s=R.choice(ss); o=R.choice(os_)
        if rel=="reports_to":
            o=R.choice([q for q in staff[s.attr["co"]]+[None] if q is not s]) if len(staff[s.attr["co"]])>1 else None
            if o is None or s is staff[s.attr["co"]][0]: continue
        if rel=="parent_company" and s.title in("Northgate Systems","Kestrel Aviation","Meridian Schools") and tries<400:
            o={"Northgate Systems":C["Northgate Capital"],"Kestrel Aviation":C["Kestrel Logistics"],"Meridian Schools":C["Meridian Freight"]}[s.title]
        elif rel=="parent_company" and (o.title not in SUB): continue
        n=s if side=="s" else o
        if s is o or n.traps>=2 or linked(rel,s,o) or any(t[0]==rel and {t[1],t[2]}=={s,o} for t in traps): continue
        if rel=="acquired" and linked("parent_company",s,o): continue
        if rel=="parent_company" and linked("acquired",s,o): continue
        if rel=="invested_in" and linked("acquired",s,o): continue
        if rel in("depends_on","supersedes") and (linked("supersedes",s,o) or linked("depends_on",s,o)): continue
        if rel=="depends_on" and any(t[0]==rel and t[3] is n for t in traps): continue
        if rel=="parent_company" and any(t[0]==rel and t[3] is n for t in traps): continue
        tl=ts
        if rel=="parent_company": tl=ts[:1] if o.title not in SUB else ts[1:]
        if rel=="founded" and linked("works_at",s,o): continue
        trap(rel,s,o,n,fill(least(tl,"trap"+rel+side),n,s=LK(s,.1),o=LK(o,.3 if o.type=="meeting" else .1))); k-=1
    assert k==0,(rel,side,k)

# ------------------------------------------------------------------ filler
F={"person":["Prefers email to phone.","Best reached before ten in the morning.","Lives near {place2} with two kids and a very old dog.","Easy to talk to, asks good questions.","Speaks French and a little Spanish.","We first talked at a trade fair in {place2}.","Very direct, which I like.","Cares a lot about {topic}.","Sent me a good article on {topic}.","Wants to hear more about {topic} in the autumn.","Likes cycling and long lunches.","Vegetarian, remember when booking dinner.","Usually travels on Thursdays.","Has strong opinions on {topic}.","Gave a short talk about {topic} last {mon}.","Birthday is in {mon}.","Always on time, always prepared.","Slow to answer in {mon}, that is their busy season.","Follow up about {topic} after the holidays.","Knows everybody in {place2}.","Do not bring up {topic}, sore point.","Moved house in {mon}.","Asked for a copy of our slides about {topic}.","Owes me a coffee.","Keen runner, did the {place2} half marathon.","Happy to be a reference.","Quiet in large groups but very sharp in writing.","Reads everything you send, so keep it short."],
"company":["The company does {ind} and is based in {city}.","Small office in {city}, friendly people.","They sell {ind} to mid-sized customers.","Invoices go to the finance inbox, thirty days.","Grew quickly last year and is now hiring again.","Contract is up for renewal in {mon}.","They care most about {topic}.","Good reputation in {ind}.","Website is out of date, use the brochure instead.","Price sensitive, but loyal once they sign.","We pitched them on {topic} and they asked for more time.","They moved to a larger building in {city}.","Main worry right now is {topic}.","Decision making is slow, expect two or three rounds.","Was in the news in {mon} because of {topic}.","Support tickets are usually answered within a day.","Revenue is not public, my guess is around ten million.","They run a summer party in {mon} that is worth going to.","Their procurement form is long, allow a week.","About eighty people when I last asked.","Security questionnaire is done and filed.","Customers say the service is reliable."],
"one":["Mostly small talk, then {topic}.","Good conversation about {topic}.","No decisions, just catching up.","Both think {topic} will be the big subject next year.","Agreed to talk again in {mon}.","Ran over by half an hour.","Some useful hints about {topic}.","Short one, twenty minutes.","A few names to follow up on, see my inbox.","Talked about summer plans and {topic}.","Will share the article on {topic}.","Worth doing again.","Asked for a second opinion on {topic}.","Nothing urgent came out of it."],
"vc":["Investor based in {city}, mostly early rounds.","The website lists about twenty portfolio companies.","Two partners make all the decisions.","They like a short deck and a live demo.","Usually answer within a week.","Asked us for our view on {topic}.","Annual dinner is in {mon}, good for introductions.","Fund size is not public.","They write detailed notes after every call.","Known for asking hard questions about {topic}.","Reports to their own investors are due in {mon}.","Good reputation with founders.","They hold office hours in {city} once a month."],
"meeting":["Started ten minutes late because of the video link.","Most of the time went on {topic}.","Agreed to come back to {topic} next month.","Good mood overall, fewer surprises than last time.","Budget is fixed until the end of the year.","Open question: who owns {topic}.","We went through the slides quickly and left time for questions.","Some disagreement about {topic}, parked for now.","The timeline slipped by two weeks.","Decision: go ahead with the smaller option first.","Next one is planned for {mon}.","Lots of discussion on {topic}, no clear answer.","Demo worked this time.","Nobody had read the document in advance.","Risks: staffing over the summer and {topic}.","Numbers for {mon} look better than expected.","We need a clear owner for {topic} before the next call.","Short meeting, mostly status updates.","Legal will check the wording on {topic}.","Coffee was terrible, room was fine.","Asked for a written summary by Friday."],
"deal":["Amount was kept out of the press.","Due diligence took about six weeks.","Main issue was {topic}.","Lawyers on both sides were reasonable.","Data room is in the shared folder.","First contact was in {mon}.","Valuation came out a bit lower than hoped.","Timeline slipped twice because of {topic}.","Summary memo is filed with the finance team.","The board wanted more detail on {topic}.","References were good.","Term sheet went through three versions.","Key risk: {topic}.","Customer calls were positive overall.","Lesson for next time: agree on {topic} earlier.","Exclusivity ended in {mon}.","Numbers checked against the audited accounts.","Announcement was planned for {mon}."],
"project":["A {desc}, open source.","Docs are thin, read the tests instead.","Last release was in {mon}.","Licence is MIT.","Install is one command and works on all our machines.","The issue tracker is active, answers usually come in a day or two.","Performance is fine for our data sizes.","Upgrade notes live in the changelog.","Watch out for the config format change in {mon}.","Test coverage is around eighty percent.","We pin the version in every service.","Nice small API, easy to teach to new people.","CI takes about ten minutes.","There is a known memory issue under heavy load.","Wrote a short guide for the team wiki.","Logging could be better.","Next release should come in {mon}."]}
TASK=["Send the follow-up email","Book a room for {mon}","Share the notes on {topic}","Check the invoice","Ask about {topic}","Update the contact details","Prepare two slides on {topic}","Call back in {mon}"]
def fil(t,n):
    g=n.attr
    for k,v in dict(place2=R.choice(PLACE[:6]+PLACE[7:]),topic=(n.topics.pop() if "{topic}" in t else ""),mon=R.choice(MON),ind=g.get("ind",""),city=g.get("city",""),desc=g.get("desc","")).items(): t=t.replace("{"+k+"}",v)
    return t
def wc(t): return len(re.findall(r"[A-Za-z0-9][\w'&-]*",re.sub(r"[\[\]|#]"," ",t)))
def sent1(n):
    t=n.type
    if t=="meeting":
        if n.attr["one"]:
            f=next(f for f in facts if f["rel"]=="met_with" and f["note"] is n); a,b=f["s"],f["o"]
            k=n.attr["kind"]; return {"coffee":f"[[{a.title}]] met with [[{b.title}]] for coffee.","lunch":f"[[{a.title}]] had lunch with [[{b.title}]].","call":f"Call between [[{a.title}]] and [[{b.title}]].","breakfast":f"[[{a.title}]] met [[{b.title}]] for breakfast.","drinks":f"[[{a.title}]] met up with [[{b.title}]] for drinks after work."}[k]
        s=n.attr["subj"]; k=n.attr["kind"]
        return R.choice([f"{k.capitalize()} for {LK(s)}.",f"Notes from the {k} about {LK(s)}.",f"Topic: {LK(s)}, {k}."])
    if t=="deal":
        c=LK(n.attr["co"]); k=n.attr["kind"]
        if k=="round": return f"Funding round for {c}."
        if k=="sale": return f"Sale of {c}."
        if k=="pass": return f"Proposed bridge round for {c}."
        return f"Possible sale of {c}, closed file."
    return ""
used=collections.Counter()
for f in facts:
    if f["rel"]=="met_with" and f["note"].type=="meeting" and f["note"].attr["one"]:
        f["note"].prose=[x for x in f["note"].prose if not(f"[[{f['s'].title}" in x and f"[[{f['o'].title}" in x)]
for n in notes:
    for at in("fm","inline","heads"):
        m=collections.OrderedDict()
        for k,ls in getattr(n,at): m.setdefault(k,[]).extend(ls)
        setattr(n,at,list(m.items()))
files={}
for n in notes:
    a=n.attr; fm=[f"id: {n.id}",f"type: {n.type}"]
    if n.type=="company" and n.alias: fm.append(f"aliases: [{n.alias}]")
    if n.type=="person":
        fm.append(f"{R.choice(['role','title','role'])}: {a['role']}")
        if R.random()<.35: fm.append(f"email: {re.sub(r'[^a-z]','',a['first'].lower())}@example.com")
    if n.type=="company": fm+= [f"industry: {a['ind']}",f"city: {a['city']}"]
    if n.type=="meeting": fm.append(f"date: {a['date']}")
    if n.type=="deal": fm.append(f"status: {a['status']}")
    if n.type=="project": fm.append("status: "+("archived" if n.title in("authbox","quill-legacy","fastgrid","postbag") else "active"))
    for k,ls in n.fm:
        single=len(ls)==1 and k in("company","employer","works_at","organization","previous_company","previously","former_employer","worked_at","founded","founder_of","founder","founded_by","acquired_by","maintainer","maintained_by","manager","reports_to","boss","parent","parent_company","replaces","supersedes","superseded_by","replaced_by","acquirer","buyer","target","investor","met_with","met")
        if single: fm.append(f'{k}: "{ls[0]}"')
        else: fm.append(f"{k}:"); fm+= [f'  - "{x}"' for x in ls]
    if R.random()<.6: fm.append(f"tags: [{ {'person':'people','company':'company','meeting':'meeting','deal':'deal','project':'software'}[n.type] }]")
    body=[]
    if R.random()<.6: body.append(f"# {n.title}")
    if n.inline: body.append("\n".join(f"{k}:: {', '.join(ls)}" for k,ls in n.inline))
    first=sent1(n)
    pr=n.prose[:]; R.shuffle(pr)
    if n.type=="person": pr.sort(key=lambda x: 1 if re.match(r"(Before that|Previously|He also|She also)",x) else 0)
    FK="vc" if n.attr.get("vc") else "one" if n.attr.get("one") else n.type
    cand=F[FK][:]; R.shuffle(cand); cand.sort(key=lambda t:used[t])
    if FK in("vc","company","project"): cand.remove(F[FK][0]); cand.insert(0,F[FK][0])
    n.topics=TOPIC[:]; R.shuffle(n.topics)
    extra=[]; heads="".join(h+" ".join(l) for h,l in n.heads)+" ".join(n.rels)
    tasks=[fil(t,n) for t in R.sample(TASK,2)] if R.random()<.4 else []
    target=R.randint(58,86)
    base=" ".join(body+[first]+pr+[heads]+tasks)
    used_topics=set()
    for t in cand:
        if wc(base+" "+" ".join(extra))>=target: break
        used[t]+=1; extra.append(fil(t,n))
    if n.type in("company","project") and extra:   # put the descriptive one first
        extra.sort(key=lambda x:0 if x.startswith(("The company does","Investor based","A "+a.get("desc","~"))) else 1)
    lay=R.choice(["para","para","bullets"])
    if lay=="para":
        mix=pr+extra[1:] if n.type!="person" else pr+extra
        lead=[first] if first else []
        if n.type!="person" and extra: lead.append(extra[0])
        # keep relations and filler interleaved
        seq=[]; e=extra[:] if n.type=="person" else extra[1:]; q=pr[:]
        while q or e:
            if q: seq.append(q.pop(0))
            if e: seq.append(e.pop(0))
        seq=lead+seq; cut=max(2,len(seq)//2)
        body.append(" ".join(seq[:cut])); 
        if seq[cut:]: body.append(" ".join(seq[cut:]))
    else:
        lead=[first] if first else []
        if extra: lead.append(extra.pop(0))
        q=pr[:]
        if q and n.type=="person": lead.insert(0,q.pop(0))
        body.append(" ".join(lead)); rest_=q+extra
        if n.type!="person": R.shuffle(rest_)
        if rest_: body.append("## Notes\n"+"\n".join("- "+x for x in rest_))
    for h,ls in n.heads:
        body.append(f"## {h}\n"+"\n".join(ls))
    if tasks: body.append(R.choice(["## Next steps","## To do","## Actions"])+"\n"+"\n".join("- [ ] "+x for x in tasks))
    if n.rels: body.append("## Relations\n"+"\n".join(n.rels))
    txt="---\n"+"\n".join(fm)+"\n---\n\n"+"\n\n".join(body)+"\n"
    p=os.path.join(OUT,"notes",n.folder,n.title+".md"); os.makedirs(os.path.dirname(p),exist_ok=True)
    open(p,"w",encoding="utf-8").write(txt); files[n.id]=txt

# ------------------------------------------------------------------ questions
idx=collections.defaultdict(set)
for f in facts:
    idx[(f["rel"],"s",f["s"])].add(f["o"]); idx[(f["rel"],"o",f["o"])].add(f["s"])
for f in facts:
    if f["rel"]=="met_with": idx[("met","",f["s"])].add(f["o"]); idx[("met","",f["o"])].add(f["s"])
obj=lambda r,s: idx[(r,"s",s)]
sub=lambda r,o: idx[(r,"o",o)]
def nm(n):
    if n.type=="meeting":
        d=n.attr["date"]; base=f"{n.attr['subj'].title} {n.attr['kind']}"
        return base
    if n.type=="company" and n.alias and R.random()<.25: return n.alias
    return n.title
Q={ # rel: (direction given end, n questions, templates)
"works_at":[("o",9,["Who works at {x}?","who works for {x}","people at {x}","Who is at {x}?","employees of {x}"]),("s",5,["Where does {x} work?","which company does {x} work for","where is {x} working now"])],
"worked_at":[("o",7,["Who used to work at {x}?","former employees of {x}","who has worked at {x} in the past"]),("s",4,["Where did {x} work before?","{x} previous company","which company did {x} work at previously"])],
"founded":[("o",7,["Who founded {x}?","founder of {x}","who started {x}"]),("s",4,["What company did {x} found?","which company did {x} start"])],
"invested_in":[("o",7,["Who invested in {x}?","investors in {x}","who are the investors of {x}"]),("s",5,["What has {x} invested in?","{x} portfolio companies","which companies did {x} invest in"])],
"acquired":[("o",6,["Who acquired {x}?","who bought {x}","which company took over {x}"]),("s",5,["What companies has {x} acquired?","which company did {x} buy","{x} acquisitions"])],
"attended":[("o",8,["Who attended the {x}?","who was at the {x}","attendees of the {x}","Who was in the {x} meeting?"]),("s",4,["Which meetings did {x} attend?","what meetings was {x} in","meetings {x} has been to"])],
"met_with":[("m",9,["Who did {x} meet with?","who has {x} met","people {x} met with","Who met with {x}?"])],
"depends_on":[("o",5,["What depends on {x}?","which projects use {x}","what uses {x}"]),("s",4,["What does {x} depend on?","{x} dependencies","which libraries does {x} need"])],
"supersedes":[("o",4,["What replaced {x}?","what should I use instead of {x}","{x} superseded by what"]),("s",3,["What does {x} replace?","which library did {x} replace"])],
"maintains":[("o",5,["Who maintains {x}?","maintainer of {x}","who is looking after {x}"]),("s",3,["What does {x} maintain?","which projects does {x} maintain"])],
"reports_to":[("s",6,["Who does {x} report to?","who is {x}'s manager","who is {x}'s boss"]),("o",5,["Who reports to {x}?","direct reports of {x}","who does {x} manage"])],
"parent_company":[("s",5,["What is the parent company of {x}?","who owns {x}","which group is {x} part of"]),("o",5,["Which companies does {x} own?","subsidiaries of {x}","what companies are part of {x}"])]}
qs=[]
def low(t): 
    return t
qtexts=set()
def put(rel,text,ans,clause,why):
    assert 1<=len(ans)<=5,(text,len(ans)); assert text not in qtexts; qtexts.add(text)
    qs.append(dict(rel=rel,text=text,ans=sorted(a.id for a in ans),clause=clause,why=why))
dupnames=collections.Counter(nm(m) for m in meetings)
for rel,specs in Q.items():
    for d,k,ts in specs:
        if d=="m": cands=[n for n in metpool if 1<=len(idx[("met","",n)])<=5]; get=lambda n: idx[("met","",n)]
        else:
            ends={f[d] for f in byrel[rel]}; cands=[n for n in notes if n in ends]
            get=(lambda n:obj(rel,n)) if d=="s" else (lambda n:sub(rel,n))
            cands=[n for n in cands if 1<=len(get(n))<=5]
            if rel=="attended": cands=[n for n in cands if (n.type=="meeting" and not n.attr["one"]) or n in attpool]
            if rel=="works_at" and d=="o": 
                cands.sort(key=lambda n:-len(get(n))); cands=cands[:24]
        R.shuffle(cands)
        # balance over where/how the answers are stated
        assert len(cands)>=k,(rel,d,len(cands),k)
        if rel=="parent_company" and d=="o": cands=cands[:5]
        for i,n in enumerate(cands[:k]):
            t=ts[i%len(ts)]; x=nm(n)
            q=t.format(x=x); 
            if rel=="met_with" and t=="Who met with {x}?": q=f"Who met with {x}?"
            if R.random()<.2: q=q.lower()
            put(rel,q,get(n),0,n.id)
# --- extra clauses
def pick(rel,cands,k,lab):
    R.shuffle(cands); c=0; ends=set()
    for text,ans,key in cands:
        if c==k: break
        if text in qtexts or key in ends or not 1<=len(ans)<=5: continue
        ends.add(key); put(rel,text,ans,1,lab); c+=1
    assert c==k,(lab,c,k)
inco=lambda city:[c for c in companies if c.attr["city"]==city]
pick("works_at",[(f"Who works at {c.title} and used to work at {d.title}?",{p for p in sub("works_at",c) if d in obj("worked_at",p)},c) for c in companies for d in companies if c is not d and len(sub("works_at",c))>1 and any(d in obj("worked_at",p) for p in sub("works_at",c)) and not all(d in obj("worked_at",p) for p in sub("works_at",c))],3,"join")
pick("works_at",[(f"which {r}s work at {c.title}",{p for p in sub("works_at",c) if p.attr["role"]==r},c) for c in companies for r in set(LOW) if 0<sum(p.attr["role"]==r for p in sub("works_at",c))<len(sub("works_at",c))] and sorted([(f"which {r}s work at {c.title}",{p for p in sub("works_at",c) if p.attr["role"]==r},c) for c in companies for r in sorted(set(LOW)) if 0<sum(p.attr["role"]==r for p in sub("works_at",c))<len(sub("works_at",c))],key=lambda x:x[0]),2,"role")
pick("worked_at",[(f"Who used to work at {c.title} and is now at {d.title}?",{p for p in sub("worked_at",c) if p.attr["co"] is d},c) for c in companies for d in companies if len(sub("worked_at",c))>1 and 0<sum(p.attr["co"] is d for p in sub("worked_at",c))<len(sub("worked_at",c))],2,"join")
pick("founded",[(f"who founded {c.title} and still works there",{p for p in sub("founded",c) if p.attr["co"] is c},c) for c in companies if len(sub("founded",c))>1],2,"join")
pick("founded",[(f"Which founder of {c.title} has left the company?",{p for p in sub("founded",c) if c in obj("worked_at",p)},c) for c in companies if len(sub("founded",c))>1 and ("who founded "+c.title+" and still works there") not in qtexts],1,"join")
pick("invested_in",[(f"Which companies in {ct} has {v.title} invested in?",{c for c in obj("invested_in",v) if c.attr["city"]==ct},v) for v in vcs for ct in sorted({c.attr["city"] for c in companies}) if 0<sum(c.attr["city"]==ct for c in obj("invested_in",v))<len(obj("invested_in",v))],2,"city")
pick("invested_in",[(f"which companies did both {a.title} and {b.title} invest in",obj("invested_in",a)&obj("invested_in",b),a) for a,b in itertools.combinations(vcs,2)],2,"join")
pick("attended",[(f"Who from {c.title} attended the {nm(m)}?",{p for p in sub("attended",m) if p.attr["co"] is c},m) for m in meetings if not m.attr["one"] for c in companies if 0<sum(p.attr["co"] is c for p in sub("attended",m))<len(sub("attended",m))],2,"join")
pick("attended",[(f"which meetings did {p.title} attend in {y}",{m for m in obj("attended",p) if m.attr["date"][:4]==y},p) for p in attpool for y in("2023","2024","2025") if 0<sum(m.attr["date"][:4]==y for m in obj("attended",p))<len(obj("attended",p))],2,"date")
mb=[m for m in meetings if not m.attr["one"]]
pick("maintains",[(f"Who maintains both {a.title} and {b.title}?",sub("maintains",a)&sub("maintains",b),a) for a,b in itertools.combinations(projects,2) if len(sub("maintains",a)|sub("maintains",b))>1],1,"join")
pick("reports_to",[(f"Who reports to {p.title} and works as a {r}?",{q for q in sub("reports_to",p) if q.attr["role"]==r},p) for p in people for r in sorted(set(LOW)) if r[0] not in "aeiou" and 0<sum(q.attr["role"]==r for q in sub("reports_to",p))<len(sub("reports_to",p))],1,"role")
pick("reports_to",[(f"who reports to {p.title} and used to work at {c.title}",{q for q in sub("reports_to",p) if c in obj("worked_at",q)},p) for p in people for c in companies if any(c in obj("worked_at",q) for q in sub("reports_to",p))],1,"join")
pick("met_with",[(f"Who from {c.title} did {p.title} meet with?",{q for q in idx[("met","",p)] if q.attr["co"] is c},p) for p in metpool for c in companies if 0<sum(q.attr["co"] is c for q in idx[("met","",p)])<len(idx[("met","",p)])],1,"join")
pick("depends_on",[(f"What depends on both {a.title} and {b.title}?",sub("depends_on",a)&sub("depends_on",b),a) for a,b in itertools.combinations(projects,2)],1,"join")
pick("parent_company",[(f"which subsidiaries of {c.title} are in {ct}",{s for s in sub("parent_company",c) if s.attr["city"]==ct},c) for c in companies for ct in sorted({x.attr["city"] for x in companies}) if 0<sum(s.attr["city"]==ct for s in sub("parent_company",c))<len(sub("parent_company",c))],1,"city")
pick("maintains",[(f"which libraries that depend on {a.title} does {p.title} maintain",{x for x in obj("maintains",p) if a in obj("depends_on",x)},p) for p in people for a in projects if obj("maintains",p) and 0<sum(a in obj("depends_on",x) for x in obj("maintains",p))<len(obj("maintains",p))],1,"join")
nxt=150-len(qs)
R.shuffle(qs)
for i,q in enumerate(qs,1): q["qid"]=f"q{i:03d}"
with open(OUT+"/queries.jsonl","w") as h:
    for q in qs: h.write(json.dumps({"qid":q["qid"],"text":q["text"]},ensure_ascii=False)+"\n")
with open(OUT+"/qrels.tsv","w") as h:
    for q in qs:
        for a in q["ans"]: h.write(f"{q['qid']}\t{a}\t1\n")
with open(OUT+"/facts.tsv","w") as h:
    for f in facts: h.write(f"{f['rel']}\t{f['s'].id}\t{f['o'].id}\t{f['form']}\t{f['note'].id}\n")
with open(OUT+"/traps.tsv","w") as h:
    for t in traps: h.write(f"{t[0]}\t{t[1].id}\t{t[2].id}\t{t[3].id}\t{t[4]}\n")
with open(OUT+"/questions-meta.tsv","w") as h:
    for q in qs: h.write(f"{q['qid']}\t{q['rel']}\t{q['clause']}\t{q['why']}\n")
print("notes",len(notes),"facts",len(facts),"traps",len(traps),"queries",len(qs),"clause",sum(q["clause"] for q in qs))
