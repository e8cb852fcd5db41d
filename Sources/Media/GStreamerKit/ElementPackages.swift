// Written by scripts/element-packages; not by hand.

/// The elements of Debian GNU/Linux 12 (bookworm)'s packages, one package a line.
let elementPackages = """
    gstreamer1.0-adapter-pulseeffects: peadapter
    gstreamer1.0-alsa: alsamidisrc alsasink alsasrc
    gstreamer1.0-autogain-pulseeffects: peautogain
    gstreamer1.0-clutter-3.0: clutterautovideosink
    gstreamer1.0-convolver-pulseeffects: peconvolver
    gstreamer1.0-crystalizer-pulseeffects: pecrystalizer
    gstreamer1.0-espeak: espeak
    gstreamer1.0-gl: glalpha glcolorbalance glcolorconvert glcolorscale gldeinterlace gldifferencematte \
    gldownload gleffects gleffects_blur gleffects_bulge gleffects_fisheye gleffects_glow gleffects_heat \
    gleffects_identity gleffects_laplacian gleffects_lumaxpro gleffects_mirror gleffects_sepia \
    gleffects_sin gleffects_sobel gleffects_square gleffects_squeeze gleffects_stretch gleffects_tunnel \
    gleffects_twirl gleffects_xpro gleffects_xray glfilterapp glfilterbin glfiltercube glfilterglass \
    glimagesink glimagesinkelement glmixerbin glmosaic gloverlay gloverlaycompositor glshader glsinkbin \
    glsrcbin glstereomix glstereosplit gltestsrc gltransformation glupload glvideoflip glvideomixer \
    glvideomixerelement glviewconvert
    gstreamer1.0-gtk3: gtkglsink gtksink
    gstreamer1.0-libav: avdec_4xm avdec_8bps avdec_8svx_exp avdec_8svx_fib avdec_aac avdec_aac_fixed \
    avdec_aac_latm avdec_aasc avdec_ac3 avdec_ac3_fixed avdec_acelp_kelvin avdec_adpcm_4xm \
    avdec_adpcm_adx avdec_adpcm_afc avdec_adpcm_agm avdec_adpcm_aica avdec_adpcm_argo avdec_adpcm_ct \
    avdec_adpcm_dtk avdec_adpcm_ea avdec_adpcm_ea_maxis_xa avdec_adpcm_ea_r1 avdec_adpcm_ea_r2 \
    avdec_adpcm_ea_r3 avdec_adpcm_ea_xas avdec_adpcm_ima_acorn avdec_adpcm_ima_alp avdec_adpcm_ima_amv \
    avdec_adpcm_ima_apc avdec_adpcm_ima_apm avdec_adpcm_ima_cunning avdec_adpcm_ima_dat4 \
    avdec_adpcm_ima_dk3 avdec_adpcm_ima_dk4 avdec_adpcm_ima_ea_eacs avdec_adpcm_ima_ea_sead \
    avdec_adpcm_ima_iss avdec_adpcm_ima_moflex avdec_adpcm_ima_mtf avdec_adpcm_ima_oki \
    avdec_adpcm_ima_qt avdec_adpcm_ima_rad avdec_adpcm_ima_smjpeg avdec_adpcm_ima_ssi \
    avdec_adpcm_ima_wav avdec_adpcm_ima_ws avdec_adpcm_ms avdec_adpcm_mtaf avdec_adpcm_psx \
    avdec_adpcm_sbpro_2 avdec_adpcm_sbpro_3 avdec_adpcm_sbpro_4 avdec_adpcm_swf avdec_adpcm_thp \
    avdec_adpcm_thp_le avdec_adpcm_vima avdec_adpcm_xa avdec_adpcm_yamaha avdec_adpcm_zork avdec_agm \
    avdec_aic avdec_alac avdec_alias_pix avdec_als avdec_amrnb avdec_amrwb avdec_amv avdec_anm \
    avdec_ansi avdec_ape avdec_apng avdec_aptx avdec_aptx_hd avdec_arbc avdec_argo avdec_asv1 avdec_asv2 \
    avdec_atrac1 avdec_atrac3 avdec_atrac3al avdec_atrac3plus avdec_atrac3plusal avdec_atrac9 avdec_aura \
    avdec_aura2 avdec_avrn avdec_avrp avdec_avs avdec_avui avdec_bethsoftvid avdec_bfi \
    avdec_binkaudio_dct avdec_binkaudio_rdft avdec_binkvideo avdec_bintext avdec_bitpacked avdec_bmp \
    avdec_bmv_audio avdec_bmv_video avdec_brender_pix avdec_c93 avdec_camstudio avdec_camtasia \
    avdec_cavs avdec_cdtoons avdec_cdxl avdec_cfhd avdec_cinepak avdec_clearvideo avdec_cljr avdec_cllc \
    avdec_comfortnoise avdec_cook avdec_cpia avdec_cri avdec_cyuv avdec_dca avdec_dds avdec_derf_dpcm \
    avdec_dfa avdec_dfpwm avdec_dirac avdec_dnxhd avdec_dolby_e avdec_dpx avdec_dsd_lsbf \
    avdec_dsd_lsbf_planar avdec_dsd_msbf avdec_dsd_msbf_planar avdec_dsicinaudio avdec_dsicinvideo \
    avdec_dss_sp avdec_dst avdec_dvaudio avdec_dvvideo avdec_dxa avdec_dxtory avdec_dxv avdec_eac3 \
    avdec_eacmv avdec_eamad avdec_eatgq avdec_eatgv avdec_eatqi avdec_escape124 avdec_escape130 \
    avdec_evrc avdec_exr avdec_fastaudio avdec_ffv1 avdec_ffvhuff avdec_fic avdec_fits avdec_flac \
    avdec_flashsv avdec_flashsv2 avdec_flic avdec_flv avdec_fmvc avdec_fraps avdec_frwu avdec_g2m \
    avdec_g722 avdec_g723_1 avdec_g726 avdec_g726le avdec_g729 avdec_gdv avdec_gem avdec_gif \
    avdec_gremlin_dpcm avdec_gsm avdec_gsm_ms avdec_h261 avdec_h263 avdec_h263i avdec_h263p avdec_h264 \
    avdec_h265 avdec_hap avdec_hca avdec_hcom avdec_hnm4video avdec_hq_hqa avdec_hqx avdec_huffyuv \
    avdec_hymt avdec_iac avdec_idcinvideo avdec_idf avdec_iff avdec_ilbc avdec_imc avdec_imm4 avdec_imm5 \
    avdec_indeo2 avdec_indeo3 avdec_indeo4 avdec_indeo5 avdec_interplay_dpcm avdec_interplayacm \
    avdec_interplayvideo avdec_ipu avdec_jpeg2000 avdec_jpegls avdec_jv avdec_kgv1 avdec_kmvc \
    avdec_lagarith avdec_loco avdec_lscr avdec_m101 avdec_mace3 avdec_mace6 avdec_magicyuv avdec_mdec \
    avdec_metasound avdec_mimic avdec_mjpeg avdec_mjpegb avdec_mlp avdec_mmvideo avdec_mobiclip \
    avdec_motionpixels avdec_mp1float avdec_mp2float avdec_mp3 avdec_mp3adu avdec_mp3adufloat \
    avdec_mp3float avdec_mp3on4 avdec_mp3on4float avdec_mpc7 avdec_mpc8 avdec_mpeg2video avdec_mpeg4 \
    avdec_mpegvideo avdec_msa1 avdec_mscc avdec_msmpeg4 avdec_msmpeg4v1 avdec_msmpeg4v2 avdec_msnsiren \
    avdec_msp2 avdec_msrle avdec_mss1 avdec_mss2 avdec_msvideo1 avdec_mszh avdec_mts2 avdec_mv30 \
    avdec_mvc1 avdec_mvc2 avdec_mvdv avdec_mvha avdec_mwsc avdec_mxpeg avdec_nellymoser avdec_notchlc \
    avdec_nuv avdec_on2avc avdec_opus avdec_paf_audio avdec_paf_video avdec_pam avdec_pbm avdec_pcm_lxf \
    avdec_pcm_sga avdec_pcm_vidc avdec_pcx avdec_pfm avdec_pgm avdec_pgmyuv avdec_pgx avdec_phm \
    avdec_photocd avdec_pictor avdec_pixlet avdec_png avdec_ppm avdec_prores avdec_prosumer avdec_psd \
    avdec_ptx avdec_qcelp avdec_qdm2 avdec_qdmc avdec_qdraw avdec_qoi avdec_qpeg avdec_qtrle avdec_r10k \
    avdec_ralf avdec_rasc avdec_real_144 avdec_real_288 avdec_rl2 avdec_roq_dpcm avdec_roqvideo \
    avdec_rpza avdec_rscc avdec_rv10 avdec_rv20 avdec_rv30 avdec_rv40 avdec_s302m avdec_sanm avdec_sbc \
    avdec_scpr avdec_screenpresso avdec_sdx2_dpcm avdec_sga avdec_sgi avdec_sgirle avdec_sheervideo \
    avdec_shorten avdec_simbiosis_imx avdec_sipr avdec_siren avdec_smackaud avdec_smackvid avdec_smc \
    avdec_smvjpeg avdec_snow avdec_sol_dpcm avdec_sonic avdec_sp5x avdec_speedhq avdec_speex avdec_srgc \
    avdec_sunrast avdec_svq1 avdec_svq3 avdec_tak avdec_targa avdec_targa_y216 avdec_tdsc avdec_thp \
    avdec_tiertexseqvideo avdec_tiff avdec_tmv avdec_truehd avdec_truemotion1 avdec_truemotion2 \
    avdec_truemotion2rt avdec_truespeech avdec_tscc2 avdec_tta avdec_twinvq avdec_txd avdec_ultimotion \
    avdec_utvideo avdec_vb avdec_vble avdec_vbn avdec_vc1 avdec_vc1image avdec_vcr1 avdec_vmdaudio \
    avdec_vmdvideo avdec_vmnc avdec_vp3 avdec_vp4 avdec_vp5 avdec_vp6 avdec_vp6a avdec_vp6f avdec_vp7 \
    avdec_vp8 avdec_vp9 avdec_vqavideo avdec_wavesynth avdec_wcmv avdec_webp avdec_wmalossless \
    avdec_wmapro avdec_wmav1 avdec_wmav2 avdec_wmavoice avdec_wmv1 avdec_wmv2 avdec_wmv3 avdec_wmv3image \
    avdec_wnv1 avdec_ws_snd1 avdec_xan_dpcm avdec_xan_wc3 avdec_xan_wc4 avdec_xbin avdec_xbm avdec_xface \
    avdec_xl avdec_xma1 avdec_xma2 avdec_xpm avdec_xwd avdec_ylc avdec_yop avdec_zerocodec avdec_zmbv \
    avdeinterlace avdemux_4xm avdemux_aiff avdemux_ape avdemux_avs avdemux_bfstm avdemux_brstm \
    avdemux_daud avdemux_dsf avdemux_ea avdemux_film_cpk avdemux_gif avdemux_gxf avdemux_idcin \
    avdemux_iff avdemux_ipmovie avdemux_ivf avdemux_mm avdemux_mmf avdemux_mpc avdemux_mpc8 avdemux_mxf \
    avdemux_nsv avdemux_nut avdemux_nuv avdemux_psxstr avdemux_pva avdemux_smk avdemux_sol avdemux_tta \
    avdemux_vmd avdemux_voc avdemux_wc3movie avdemux_wsaud avdemux_wsvqa avdemux_xwma \
    avdemux_yuv4mpegpipe avenc_a64multi avenc_a64multi5 avenc_aac avenc_ac3 avenc_ac3_fixed \
    avenc_adpcm_adx avenc_adpcm_argo avenc_adpcm_ima_alp avenc_adpcm_ima_amv avenc_adpcm_ima_apm \
    avenc_adpcm_ima_qt avenc_adpcm_ima_ssi avenc_adpcm_ima_wav avenc_adpcm_ima_ws avenc_adpcm_ms \
    avenc_adpcm_swf avenc_adpcm_yamaha avenc_alac avenc_alias_pix avenc_amv avenc_apng avenc_aptx \
    avenc_aptx_hd avenc_asv1 avenc_asv2 avenc_avrp avenc_avui avenc_bitpacked avenc_bmp avenc_cfhd \
    avenc_cinepak avenc_cljr avenc_comfortnoise avenc_dca avenc_dfpwm avenc_dnxhd avenc_dpx \
    avenc_dvvideo avenc_eac3 avenc_exr avenc_ffv1 avenc_ffvhuff avenc_fits avenc_flashsv avenc_flashsv2 \
    avenc_flv avenc_g722 avenc_g723_1 avenc_g726 avenc_g726le avenc_h261 avenc_h263 avenc_h263p \
    avenc_h264_omx avenc_hap avenc_huffyuv avenc_jpeg2000 avenc_jpegls avenc_ljpeg avenc_magicyuv \
    avenc_mjpeg avenc_mlp avenc_mp2 avenc_mp2fixed avenc_mpeg1video avenc_mpeg2video avenc_mpeg4 \
    avenc_mpeg4_omx avenc_msmpeg4 avenc_msmpeg4v2 avenc_msvideo1 avenc_nellymoser avenc_opus avenc_pam \
    avenc_pbm avenc_pcm_vidc avenc_pcx avenc_pfm avenc_pgm avenc_pgmyuv avenc_phm avenc_png avenc_ppm \
    avenc_prores avenc_prores_aw avenc_prores_ks avenc_qoi avenc_qtrle avenc_r10k avenc_real_144 \
    avenc_roq_dpcm avenc_roqvideo avenc_rpza avenc_rv10 avenc_rv20 avenc_s302m avenc_sbc avenc_sgi \
    avenc_smc avenc_snow avenc_sonic avenc_sonicls avenc_speedhq avenc_sunrast avenc_svq1 avenc_targa \
    avenc_tiff avenc_truehd avenc_tta avenc_utvideo avenc_vbn avenc_vc2 avenc_wavpack avenc_wmav1 \
    avenc_wmav2 avenc_wmv1 avenc_wmv2 avenc_xbm avenc_xface avenc_xwd avenc_zmbv avmux_3g2 avmux_3gp \
    avmux_a64 avmux_adts avmux_adx avmux_aiff avmux_alp avmux_amr avmux_amv avmux_apm avmux_apng \
    avmux_argo_asf avmux_argo_cvg avmux_asf avmux_asf_stream avmux_ast avmux_au avmux_avi avmux_avif \
    avmux_avm2 avmux_avs3 avmux_bit avmux_caf avmux_chromaprint avmux_codec2 avmux_dash avmux_daud \
    avmux_dv avmux_dvd avmux_f4v avmux_film_cpk avmux_filmstrip avmux_fits avmux_flv avmux_gxf \
    avmux_hash avmux_hds avmux_hls avmux_ico avmux_ilbc avmux_ipod avmux_ircam avmux_ismv avmux_ivf \
    avmux_kvag avmux_latm avmux_matroska avmux_md5 avmux_mkvtimestamp_v2 avmux_mmf avmux_mov avmux_mp2 \
    avmux_mp3 avmux_mp4 avmux_mpeg avmux_mpegts avmux_mpjpeg avmux_mxf avmux_mxf_d10 avmux_mxf_opatom \
    avmux_nut avmux_obu avmux_oga avmux_ogg avmux_ogv avmux_oma avmux_opus avmux_psp avmux_rm avmux_rso \
    avmux_rtsp avmux_sap avmux_smjpeg avmux_smoothstreaming avmux_sox avmux_spdif avmux_spx \
    avmux_streamhash avmux_svcd avmux_swf avmux_tta avmux_uncodedframecrc avmux_vc1test avmux_vcd \
    avmux_vidc avmux_vob avmux_voc avmux_w64 avmux_wav avmux_webp avmux_wsaud avmux_wtv \
    avmux_yuv4mpegpipe
    gstreamer1.0-libcamera: libcamerasrc
    gstreamer1.0-nice: nicesink nicesrc
    gstreamer1.0-opencv: cameracalibrate cameraundistort cvdilate cvequalizehist cverode cvlaplace \
    cvsmooth cvsobel cvtracker dewarp disparity edgedetect faceblur facedetect grabcut handdetect \
    motioncells opencvtextoverlay retinex segmentation skindetect templatematch
    gstreamer1.0-pipewire: pipewiresink pipewiresrc
    gstreamer1.0-plugins-bad: a2dpsink accurip adpcmdec adpcmenc aesdec aesenc aiffmux aiffparse \
    alphacombine asfmux asfparse assrender atscmux audiobuffersplit audiochannelmix audiolatency \
    audiomixmatrix audioparse audiosegmentclip autoconvert autovideoconvert av1dec av1enc av1parse \
    avdtpsink avdtpsrc avwait bayer2rgb bpmdetect bs2b bulge burn bz2dec bz2enc camerabin cc708overlay \
    cccombiner ccconverter ccextractor checksumsink chopmydata chromahold chromaprint chromium circle \
    clockselect codecalphademux coloreffects combdetect compare curlfilesink curlftpsink curlhttpsink \
    curlhttpsrc curlsftpsink curlsmtpsink dashdemux dashsink dc1394src debugqroverlay debugspy \
    decklinkaudiosink decklinkaudiosrc decklinkvideosink decklinkvideosrc dfbvideosink diffuse dilate \
    diracparse dodge dtlsdec dtlsenc dtlssrtpdec dtlssrtpdemux dtlssrtpenc dtmfdetect dtsdec dvbbasebin \
    dvbsrc dvbsubenc dvbsuboverlay dvdspu errorignore exclusion faad faceoverlay fakeaudiosink \
    fakevideosink fbdevsink festival fieldanalysis fisheye flitetestsrc fluiddec fpsdisplaysink freeverb \
    gaussianblur gdpdepay gdppay gmedec gsmdec gsmenc gtkwaylandsink h263parse h264parse h264timestamper \
    h265parse h265timestamper hlsdemux hlssink hlssink2 id3mux interaudiosink interaudiosrc interlace \
    intersubsink intersubsrc intervideosink intervideosrc ipcpipelinesink ipcpipelinesrc \
    ipcslavepipeline irtspparse ivfparse ivtc jifmux jp2kdecimator jpeg2000parse jpegparse kaleidoscope \
    katedec kateenc kateparse katetag kmssink ladspa-amp-so-amp-mono ladspa-amp-so-amp-stereo \
    ladspa-delay-so-delay-5s ladspa-filter-so-hpf ladspa-filter-so-lpf ladspa-sine-so-sine-faaa \
    ladspa-sine-so-sine-faac ladspa-sine-so-sine-fcaa ladspasrc-noise-so-noise-white \
    ladspasrc-sine-so-sine-fcac lcms ldacenc libde265dec line21decoder line21encoder marble midiparse \
    mirror modplug mpeg2enc mpeg4videoparse mpegpsdemux mpegpsmux mpegtsmux mpegvideoparse mplex \
    mssdemux musepackdec mxfdemux mxfmux neonhttpsrc netsim openalsink openalsrc openaptxdec openaptxenc \
    openexrdec openh264dec openh264enc openjpegdec openjpegenc openmptdec openni2src opusparse pcapparse \
    perspective pinch pitch pngparse pnmdec pnmenc proxysink proxysrc qroverlay removesilence rfbsrc \
    rgb2bayer ristrtpdeext ristrtpext ristrtxreceive ristrtxsend ristsink ristsrc rotate roundrobin \
    rsndvdbin rsvgdec rsvgoverlay rtmp2sink rtmp2src rtmpsink rtmpsrc rtpasfpay rtponvifparse \
    rtponviftimestamp rtpsink rtpsrc sbcdec sbcenc scenechange sctpdec sctpenc sdpdemux sdpsrc sfdec \
    shmsink shmsrc simplevideomark simplevideomarkdetect sirendec sirenenc smooth solarize spacescope \
    spanplc spectrascope speed sphere square srtclientsink srtclientsrc srtenc srtpdec srtpenc \
    srtserversink srtserversrc srtsink srtsrc stretch switchbin synaescope teletextdec testsrcbin \
    timecodestamper tonegeneratesrc transcodebin tsdemux tsparse ttmlparse ttmlrender tunnel twirl \
    uritranscodebin uvch264mjpgdemux uvch264src vc1parse videoanalyse videocodectestsink videodiff \
    videoframe-audiolevel videoparse videosegmentclip viewfinderbin vmncdec voaacenc voamrwbenc \
    vp8alphadecodebin vp9alphadecodebin vp9parse vulkancolorconvert vulkandownload vulkanimageidentity \
    vulkanoverlaycompositor vulkanshaderspv vulkansink vulkanupload vulkanviewconvert watchdog \
    waterripple wavescope waylandsink webpdec webpenc webrtcbin webrtcdsp webrtcechoprobe webvttenc \
    wildmididec wrappercamerabinsrc x265enc y4mdec zbar zebrastripe zxing
    gstreamer1.0-plugins-base: adder appsink appsrc audioconvert audiointerleave audiomixer audiorate \
    audioresample audiotestsrc cdparanoiasrc compositor decodebin decodebin3 encodebin encodebin2 \
    giosink giosrc giostreamsink giostreamsrc liveadder multifdsink multisocketsink oggaviparse oggdemux \
    oggmux oggparse ogmaudioparse ogmtextparse ogmvideoparse opusdec opusenc overlaycomposition parsebin \
    playbin playbin3 playsink rawaudioparse rawvideoparse socketsrc ssaparse streamsynchronizer subparse \
    subtitleoverlay tcpclientsink tcpclientsrc tcpserversink tcpserversrc theoradec theoraenc \
    theoraparse unalignedaudioparse unalignedvideoparse uridecodebin uridecodebin3 urisourcebin \
    videoconvert videoconvertscale videorate videoscale videotestsrc volume vorbisdec vorbisenc \
    vorbisparse vorbistag
    gstreamer1.0-plugins-good: 3gppmux aacparse aasink aatv ac3parse agingtv alawdec alawenc alpha \
    alphacolor amrparse apedemux apev2mux aspectratiocrop asteriskh263 audioamplify audiochebband \
    audiocheblimit audiodynamic audioecho audiofirfilter audioiirfilter audioinvert audiokaraoke \
    audiopanorama audiowsincband audiowsinclimit auparse autoaudiosink autoaudiosrc autovideosink \
    autovideosrc avidemux avimux avisubtitle breakmydata cacasink cacatv cairooverlay capssetter \
    cpureport cutter dashdemux2 dcaparse deinterlace deinterleave dicetv dtmfsrc dv1394src dvdec dvdemux \
    dynudpsink edgetv equalizer-10bands equalizer-3bands equalizer-nbands flacdec flacenc flacparse \
    flactag flvdemux flvmux flxdec gamma gdkpixbufdec gdkpixbufoverlay gdkpixbufsink goom goom2k1 \
    hdv1394src hlsdemux2 icydemux id3demux id3v2mux imagefreeze imagesequencesrc interleave ismlmux \
    jackaudiosink jackaudiosrc jpegdec jpegenc lamemp3enc level matroskademux matroskamux matroskaparse \
    mj2mux monoscope mp4mux mpegaudioparse mpg123audiodec mssdemux2 mulawdec mulawenc multifilesink \
    multifilesrc multipartdemux multipartmux multiudpsink navigationtest navseek optv oss4sink oss4src \
    osssink osssrc pngdec pngenc progressreport pulsesink pulsesrc pushfilesrc qtdemux qtmoovrecover \
    qtmux quarktv radioactv revtv rganalysis rglimiter rgvolume rippletv rndbuffersize rtpL16depay \
    rtpL16pay rtpL24depay rtpL24pay rtpL8depay rtpL8pay rtpac3depay rtpac3pay rtpamrdepay rtpamrpay \
    rtpbin rtpbvdepay rtpbvpay rtpceltdepay rtpceltpay rtpdec rtpdtmfdepay rtpdtmfmux rtpdtmfsrc \
    rtpdvdepay rtpdvpay rtpfunnel rtpg722depay rtpg722pay rtpg723depay rtpg723pay rtpg726depay \
    rtpg726pay rtpg729depay rtpg729pay rtpgsmdepay rtpgsmpay rtpgstdepay rtpgstpay rtph261depay \
    rtph261pay rtph263depay rtph263pay rtph263pdepay rtph263ppay rtph264depay rtph264pay rtph265depay \
    rtph265pay rtphdrextclientaudiolevel rtphdrextcolorspace rtphdrextmid rtphdrextntp64 \
    rtphdrextrepairedstreamid rtphdrextstreamid rtphdrexttwcc rtpilbcdepay rtpilbcpay rtpisacdepay \
    rtpisacpay rtpj2kdepay rtpj2kpay rtpjitterbuffer rtpjpegdepay rtpjpegpay rtpklvdepay rtpklvpay \
    rtpldacpay rtpmp1sdepay rtpmp2tdepay rtpmp2tpay rtpmp4adepay rtpmp4apay rtpmp4gdepay rtpmp4gpay \
    rtpmp4vdepay rtpmp4vpay rtpmpadepay rtpmpapay rtpmparobustdepay rtpmpvdepay rtpmpvpay rtpmux \
    rtpopusdepay rtpopuspay rtppcmadepay rtppcmapay rtppcmudepay rtppcmupay rtpptdemux rtpqcelpdepay \
    rtpreddec rtpredenc rtprtxqueue rtprtxreceive rtprtxsend rtpsbcdepay rtpsbcpay rtpsession \
    rtpsirendepay rtpsirenpay rtpspeexdepay rtpspeexpay rtpssrcdemux rtpst2022-1-fecdec \
    rtpst2022-1-fecenc rtpstorage rtpstreamdepay rtpstreampay rtpsv3vdepay rtptheoradepay rtptheorapay \
    rtpulpfecdec rtpulpfecenc rtpvorbisdepay rtpvorbispay rtpvp8depay rtpvp8pay rtpvp9depay rtpvp9pay \
    rtpvrawdepay rtpvrawpay rtpxqtdepay rtspsrc sbcparse scaletempo shagadelictv shapewipe shout2send \
    smpte smptealpha souphttpclientsink souphttpsrc spectrum speexdec speexenc splitfilesrc splitmuxsink \
    splitmuxsrc stereo streaktv taginject testsink twolamemp2enc udpsink udpsrc v4l2radio v4l2sink \
    v4l2src vertigotv videobalance videobox videocrop videoflip videomedian videomixer vp8dec vp8enc \
    vp9dec vp9enc warptv wavenc wavpackdec wavpackenc wavpackparse wavparse webmmux ximagesrc xingmux \
    y4menc
    gstreamer1.0-plugins-ugly: a52dec amrnbdec amrnbenc amrwbdec asfdemux cdiocddasrc dvdlpcmdec \
    dvdreadsrc dvdsubdec dvdsubparse mpeg2dec pnmsrc rademux rdtdepay rdtmanager rmdemux rtpasfdepay \
    rtspreal rtspwms siddec x264enc
    gstreamer1.0-pocketsphinx: pocketsphinx
    gstreamer1.0-qt5: qmlgloverlay qmlglsink qmlglsrc
    gstreamer1.0-qt6: qml6glsink
    gstreamer1.0-rtsp: rtspclientsink
    gstreamer1.0-wpe: wpesrc wpevideosrc
    gstreamer1.0-x: clockoverlay textoverlay textrender timeoverlay ximagesink xvimagesink
    libaravis-0.8-0: aravissrc
    libfarstream-0.2-5: fsrawconference fsrtpconference fsrtpxdatadepay fsrtpxdatapay fsvideoanyrate
    libges-1.0-0: gesdemux gessrc nlecomposition nleoperation nlesource nleurisource
    libgstreamer1.0-0: bin capsfilter clocksync concat dataurisrc downloadbuffer fakesink fakesrc fdsink \
    fdsrc filesink filesrc funnel identity input-selector multiqueue output-selector pipeline queue \
    queue2 streamiddemux tee typefind valve
    qtgstreamer-plugins-qt5: qt5glvideosink qt5videosink qtquick2videosink qwidget5videosink
    """
