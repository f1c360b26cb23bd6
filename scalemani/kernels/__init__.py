"""Arrays in, arrays out: NumPy, SciPy and Numba. No Dask, no zarr, no logging, no parameter objects.

N points have D coordinates; L is the number of landmarks, d the dimension of the embedding. Shapes are written as
(N, D). Squared distances are Euclidean and in the squared unit of the points.

Sources are cited by these marks. Section, theorem and equation numbers behind [EA], [PH], [LLL] and [NB] are those of
the thesis, of which the four papers are chapters 2 to 5.

[thesis] M. Vladymyrov. Large-Scale Methods for Nonlinear Manifold Learning. PhD thesis, University of California,
    Merced, 2014.
[EA] M. Vladymyrov and M. Á. Carreira-Perpiñán. Entropic affinities: properties and efficient numerical computation.
    ICML 2013, pages 477-485.
[PH] M. Vladymyrov and M. Á. Carreira-Perpiñán. Partial-Hessian strategies for fast learning of nonlinear embeddings.
    ICML 2012, pages 345-352.
[LLL] M. Vladymyrov and M. Á. Carreira-Perpiñán. Locally linear landmarks for large-scale manifold learning.
    ECML 2013, pages 256-271.
[NB] M. Vladymyrov and M. Á. Carreira-Perpiñán. Linear-time training of nonlinear low-dimensional embeddings.
    AISTATS 2014, pages 968-977.
[DPP] C. Wachinger and P. Golland. Diverse landmark sampling from determinantal point processes for scalable manifold
    learning. arXiv:1503.03506, 2015.
[GP] D. Liang and J. Paisley. Landmarking manifolds with Gaussian processes. ICML 2015.
"""
