# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of lcov, lcov-part, lcov-cut, lcov-rest, lcov-open, lcov-no-numbers, lcov-remapped and lcov-repeated."""
import base64
import os
import sys
import zlib

# code.elf: the source in TRACE, by
#   clang --target=aarch64-none-elf -O0 -g -gdwarf-4 -fdebug-prefix-map=$PWD=/src -c code.c -o code.o
#   ld.lld -N -Ttext=0x400000 -e odds code.o -o code.elf
CODE = (
    'c-o~@O-vI(6n?YY*`IDHg`yM`ED36&W^J`pf>9epLz`+MA&MvL&jJnYHfamNU;+{2*`7S<SrZS$i&hTm&69~9JU1pLcro#+A'
    '$4YVwv?r{F~01+H}8Azn>YV!SK?PWguoIGUV-UF8Z^LbTu&j`D9MX}0<w`Sl7F)y+Grmz&$13?Z+t7I1^9QVU4~Cp1u8X>{5'
    '(`h{hn<;Qu(e#DiV?xog7SC*mft7KT`Ps5H>K8<Y4I97EPX&XJDkSAGKO<mE@2b<#+t-mz~wO&v$qzS7CkXYpwQpXZ8IvilZ'
    ')c)a}K*+tYi<-G#czJUA8c?lI-Oa=b6<^(z281`~*S$)tygb5T(Uj#We%5#Mh5r9J=w1LxZ%h@m~Mq#(15Jb;2;+MH2tE4N5'
    '@PRa|C6h(z*{ldrknoFpkXjgqDM{T>r$wVPEPBkB{x542d3Olfso28-r1*!#_AaG?VT=zt-?C7DML_NvHNYiG>I4a0VL-Glt'
    '0xV2Nh!oMum0e+TbV`<md^D6ZM&&Walgg(xH3b>S6le44G-UJ=!Ip@g(2|*i?oVYC`n-QxD-<(%-5(680W}OdoGunpKnO+9H'
    '4=n)MqktlV}8bp$0w}Zzx87YonwuN10+EA23<!Oe%N*ovdo)sd-lW|r$=SdHQ;&5J#nlWt1)OSKl<(NpoZQtL_aolLuAe>;l'
    'qM+11oVX3NhRr!v|xSi($90g=K!_J{G62yn!9U8{8>GaeowZq$vy6h>c+o9%9+KMcW*i2x@unkTI^GH9IcVqmey$2YXHI(rs'
    'vdAKuH(LB9<**9$|~h7TEf{|j==(BeM)q){8~+m`^t?fU_0Nn0s_n%0s_^RtO$vY;(nUPhnGTkT@00BS0q%V~N&d#;ekX_k}'
    'C=%ih|n=2)f#4Zqm*)pxQr^7310EW|Qkg79Oouw*7)d*GL#<TnX!p>B~3YzoZw7u70d$%nS8Q(4;2EJ%guTc)P;8z*=xeb4a'
    'VF4Tdk{!9p7JSQ|YQg`-_~+X2M_P=3lpXDvruSr5##`_oG5%Vc`Co5(y8t|Fqa;Rf(x;-KzIDEDHob-PF){5zoBDTJ@YfkX+'
    '=l-LkciT&'
)

# code.elf of lcov-repeated: the source in REPEATED, by
#   gcc -O0 -g -gdwarf-4 -fdebug-prefix-map=$PWD=/src -fno-asynchronous-unwind-tables -fcf-protection=none -c code.c
#   ld -N -Ttext=0x400000 -e clear code.o -o code.elf
REPEATED_CODE = (
    'c-pO0J#W)M7=F)=^MMm9X^=<=f>bKBP;iq730kB!kn{r;At983p)&qzYbkal+l4Z*ArMP87JdL?>e#*f4aQDPh>@Y3?K|UGam~Oh'
    '*{|=p=Xvj*yYszWf3m?K1T+{}g`m}qyaDo=kb<%MnAe3O@IE((pQA``G+!hwn(0W-PF*bv{~l$M2U{Obe|;VAoOmC{9<p<?+3T$|'
    '7y7zl$X2u65j$e*PW$enrYr5vLHj0w;I?niH#2pL@i6ccxXz;zeiyy@UP%x#v!1yuw~bSQ^z+p7XEwtbmK#(<C`$_zLIR))x-L|C'
    'R%i$nG?Ob|!X-smtFyui|A1fS=j)HFUPrg~=}{ekodcd<<yq_`Gf9h(pzk}l>JN&33nee1U=t9iBTW}oe|!!>fuWPCa?Cb|me#le'
    'PA?b+e2M4v3<m;qST5%BW3rKRv3;kO9t!1mOs|yfV{VieUmMEXAUt)b%Ql_c=F>s5*S<$LaLKV%FlEC!=bRwl^3St4?iHW$dne~9'
    '_-6}Yf87cGWx|io_gVt~2El7FoLUKdNs{6?lH<y@8yJyvO?G9REDb<(-k7ee;OyE#-lt!#e&~Xzj!aX>=Sajy`(RI!ZQ0t>9ojUk'
    '-BH-3D7OBJwuXkK)9+ndHp2!k5C10`WbJdY^KcaV{~>k{(3mAyD~5j~c|Ji;^Q|d0z4$?LD`ouU1bu^mW{Q42LI0kBgB1Pq1pRjc'
    'Zl&m@1pPvA<H7!v{~;Q~g!LaYf6w=M>yN_Abux|#_=U7D5FQ=B7Tyc^Qk$ZGNx;Pv|CI#&M*_Z1(f<JpJBXS'
)

TRACE = """\
kscope-dump 1
# odds(3) of this source, which clang -O0 -g compiled for AArch64:
#
#  1  static inline __attribute__((always_inline)) int is_odd(int n)
#  2  {
#  3          return n & 1;
#  4  }
#  5
#  6  int odds(int n)
#  7  {
#  8          int count = 0;
#  9
# 10          for (int i = 0; i < n; i++)
# 11                  if (is_odd(i))
# 12                          count++;
# 13          return count;
# 14  }
# 15
# 16  int never(void)
# 17  {
# 18          return odds(7);
# 19  }
comm task=1/1 name="odds"
map task=1/1 addr=0x400000 len=0x1000 offset=0x0 prot=r-x whole path="code.elf"
branch time=0.000000001 cpu=0 task=1/1 begin to=0x400000 user
branch time=0.000000002 cpu=0 task=1/1 jump from=0x400010 to=0x400014 instructions=5 user
branch time=0.000000003 cpu=0 task=1/1 jump from=0x400024 to=0x400028 instructions=5 user
branch time=0.000000004 cpu=0 task=1/1 jump from=0x400034 to=0x40004c instructions=4 user
branch time=0.000000005 cpu=0 task=1/1 jump from=0x40004c to=0x400050 instructions=1 user
branch time=0.000000006 cpu=0 task=1/1 jump from=0x40005c to=0x400014 instructions=4 user
branch time=0.000000007 cpu=0 task=1/1 jump from=0x400024 to=0x400028 instructions=5 user
branch time=0.000000008 cpu=0 task=1/1 jump from=0x400038 to=0x40003c instructions=5 user
branch time=0.000000009 cpu=0 task=1/1 jump from=0x400048 to=0x40004c instructions=4 user
branch time=0.000000010 cpu=0 task=1/1 jump from=0x40004c to=0x400050 instructions=1 user
branch time=0.000000011 cpu=0 task=1/1 jump from=0x40005c to=0x400014 instructions=4 user
# An interrupt before the first instruction behind a jump
branch time=0.000000012 cpu=0 task=1/1 enter from=0x400014 to=0x80000 instructions=0 kernel
branch time=0.000000013 cpu=0 task=1/1 leave from=0x80010 to=0x400014 instructions=5 user
branch time=0.000000014 cpu=0 task=1/1 jump from=0x400024 to=0x400028 instructions=5 user
branch time=0.000000015 cpu=0 task=1/1 jump from=0x400034 to=0x40004c instructions=4 user
branch time=0.000000016 cpu=0 task=1/1 jump from=0x40004c to=0x400050 instructions=1 user
branch time=0.000000017 cpu=0 task=1/1 jump from=0x40005c to=0x400014 instructions=4 user
# An interrupt that hides where a jump led to
branch time=0.000000018 cpu=0 task=1/1 enter from=0x400020 to=0x80000 instructions=4 kernel
branch time=0.000000019 cpu=0 task=1/1 leave from=0x80010 to=0x400060 instructions=5 user
branch time=0.000000020 cpu=0 task=1/1 return from=0x400068 to=0x500000 instructions=3 user
lost time=0.000000021 cpu=0 bytes=100
branch time=0.000000022 cpu=0 task=1/1 end from=0x500004 instructions=2 user
"""

# QEMU jumps back to a string instruction.
REPEATED = """\
kscope-dump 1
# clear() of this source, which gcc -O0 -g compiled for x86-64:
#
#  1  void clear(void)
#  2  {
#  3          __asm__ volatile("rep stosb");
#  4  }
comm task=1/1 name="clear"
map task=1/1 addr=0x400000 len=0x1000 offset=0x0 prot=r-x whole path="code.elf"
branch time=0.000000001 cpu=0 task=1/1 begin to=0x400000 user
branch time=0.000000002 cpu=0 task=1/1 jump from=0x400004 to=0x400004 instructions=3 user
branch time=0.000000003 cpu=0 task=1/1 jump from=0x400004 to=0x400004 instructions=1 user
branch time=0.000000004 cpu=0 task=1/1 jump from=0x400004 to=0x400006 instructions=1 user
branch time=0.000000005 cpu=0 task=1/1 return from=0x400008 to=0x500000 instructions=3 user
branch time=0.000000006 cpu=0 task=1/1 end from=0x500004 instructions=2 user
"""

# Of the first two rounds of the loop
PART = "convert -t lcov -o - --time ,0.00000001\n"
WHOLE = "convert -t lcov -o -\n"
# The last branch is a jump. It counts, and its target does not, which is not selected, or not in the trace.
CUT = "convert -t lcov -o - --time ,0.000000005\n"
# From the jump that ends line 11 on: it ran before, in code that is not selected
REST = "convert -t lcov -o - --time 0.000000016,\n"
# The code of another binary comes to the same addresses, and runs half as often.
MAP, LOOP = (TRACE[TRACE.index(begin):TRACE.index(end)] for begin, end in [("map ", "branch "),
                                                                           ("branch ", "# An interrupt before")])
REMAPPED = TRACE[:TRACE.index("branch ")] + LOOP + LOOP + MAP.replace("code.elf", "other.elf") + LOOP
# As perf script prints branches
NO_NUMBERS = TRACE.replace("to=0x400028 instructions=5", "to=0x400028")
OPEN = TRACE[:TRACE.index("branch time=0.000000005")]


def main():
    for folder, verb, trace in [("lcov", WHOLE, TRACE), ("lcov-part", PART, TRACE), ("lcov-cut", CUT, TRACE),
                                ("lcov-rest", REST, TRACE),
                                ("lcov-repeated", WHOLE, REPEATED), ("lcov-remapped", WHOLE, REMAPPED),
                                ("lcov-open", WHOLE, OPEN), ("lcov-no-numbers", WHOLE, NO_NUMBERS)]:
        place = os.path.join(sys.argv[1], folder)
        os.makedirs(place, exist_ok=True)
        files = {"code.elf": zlib.decompress(base64.b85decode(REPEATED_CODE if trace == REPEATED else CODE)),
                 "input.dump": trace.encode(), "verb": verb.encode()}
        if trace == REMAPPED:
            files["other.elf"] = files["code.elf"].replace(b"/src", b"/two")
        for name, content in files.items():
            with open(os.path.join(place, name), "wb") as f:
                f.write(content)


if __name__ == "__main__":
    main()
